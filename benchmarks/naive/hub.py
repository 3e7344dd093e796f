"""The control: a hub as one writes it in an afternoon, with popular parts and an honest disk.

Same job as the call of ours that it stands beside: check the key, decode, ask the agent by A2A 1.0, store the task and
its two events durably (one transaction per call, synchronous=FULL), answer in the platform's form. A call that nobody
waits for is stored, answered, and carried out by a task in memory: a restart forgets it. No limits, retries, breaker,
metrics or log. Runs in an environment of its own (requirements.txt) and imports nothing of ours.
"""

# pyright: reportMissingImports=false
# Its packages are in its own environment alone.

import asyncio
import hmac
import os
import sys
import uuid
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiosqlite
import httpx
import uvicorn
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

TOKEN, AGENT_URL = os.environ["NAIVE_TOKEN"], os.environ["NAIVE_AGENT_URL"]
SCHEMA = """
PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
CREATE TABLE task (id TEXT PRIMARY KEY, agent TEXT, state TEXT, asked TEXT, result TEXT, created_at TEXT);
CREATE TABLE event (task_id TEXT, seq INTEGER, body TEXT, PRIMARY KEY (task_id, seq));
"""


class CallRequest(BaseModel):
    target_agent_id: str
    skill: str
    input: dict
    options: dict = {}
    context: dict = {}


@asynccontextmanager
async def lifespan(app: FastAPI):
    async with aiosqlite.connect(sys.argv[1], isolation_level=None) as db, httpx.AsyncClient(timeout=30) as client:
        await db.executescript(SCHEMA)
        app.state.db, app.state.client, app.state.lock = db, client, asyncio.Lock()
        app.state.running, app.state.slots = set(), asyncio.Semaphore(64)
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/readyz")
async def ready() -> dict:
    return {"status": "ok"}


@app.post("/v1/a2a/call")
async def call(asked: CallRequest, authorization: str = Header(), x_trace_id: str = Header()) -> dict:
    if not hmac.compare_digest(authorization, f"Bearer {TOKEN}"):
        raise HTTPException(401)
    id_, started = f"a2a_call_{uuid.uuid4().hex}", datetime.now(UTC)
    answer, result = await ask_agent(id_, asked, x_trace_id)
    db, request, ended = app.state.db, asked.model_dump_json(), datetime.now(UTC)
    async with app.state.lock:
        await db.execute("BEGIN IMMEDIATE")
        row = (id_, asked.target_agent_id, "completed", request, answer.text, started.isoformat())
        await db.execute("INSERT INTO task VALUES (?, ?, ?, ?, ?, ?)", row)
        events = [(id_, 1, '{"state":"working"}'), (id_, 2, answer.text)]
        await db.executemany("INSERT INTO event VALUES (?, ?, ?)", events)
        await db.execute("COMMIT")
    timing = {"started_at": started, "completed_at": ended, "duration_ms": int((ended - started).total_seconds() * 1e3)}
    trace = {"trace_id": x_trace_id, "span_id": uuid.uuid4().hex[:16]}
    return {"id": id_, "call_id": id_, "status": "completed", "result": result, "timing": timing, "trace": trace}


@app.post("/v1/a2a/call/async", status_code=202)
async def accept(asked: CallRequest, authorization: str = Header(), x_trace_id: str = Header()) -> dict:
    if not hmac.compare_digest(authorization, f"Bearer {TOKEN}"):
        raise HTTPException(401)
    id_, db = f"a2a_call_{uuid.uuid4().hex}", app.state.db
    row = (id_, asked.target_agent_id, "queued", asked.model_dump_json(), None, datetime.now(UTC).isoformat())
    async with app.state.lock:
        await db.execute("BEGIN IMMEDIATE")
        await db.execute("INSERT INTO task VALUES (?, ?, ?, ?, ?, ?)", row)
        await db.execute("INSERT INTO event VALUES (?, 1, ?)", (id_, '{"state":"working"}'))
        await db.execute("COMMIT")
    carrying = asyncio.create_task(carry(id_, asked, x_trace_id))
    app.state.running.add(carrying)
    carrying.add_done_callback(app.state.running.discard)
    return {"id": id_, "call_id": id_, "status": "queued"}


async def carry(id_: str, asked: CallRequest, trace_id: str) -> None:
    async with app.state.slots:
        answer, _ = await ask_agent(id_, asked, trace_id)
    db = app.state.db
    async with app.state.lock:
        await db.execute("BEGIN IMMEDIATE")
        await db.execute("UPDATE task SET state = 'completed', result = ? WHERE id = ?", (answer.text, id_))
        await db.execute("INSERT INTO event VALUES (?, 2, ?)", (id_, answer.text))
        await db.execute("COMMIT")


async def ask_agent(id_: str, asked: CallRequest, trace_id: str) -> tuple[httpx.Response, dict]:
    message = {"messageId": id_, "role": "ROLE_USER", "parts": [{"data": asked.input}]}
    frame = {"jsonrpc": "2.0", "id": id_, "method": "SendMessage", "params": {"message": message}}
    headers = {"A2A-Version": "1.0", "X-Trace-ID": trace_id}
    answer = await app.state.client.post(AGENT_URL, json=frame, headers=headers)
    answer.raise_for_status()
    task = answer.json()["result"]["task"]
    if task["status"]["state"] != "TASK_STATE_COMPLETED":
        raise HTTPException(502)
    return answer, task["artifacts"][0]["parts"][0]["data"]


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error", access_log=False)
