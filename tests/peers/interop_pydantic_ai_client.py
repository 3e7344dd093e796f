"""The client of fasta2a: sends to the URL it is given, then looks at the task until it is done."""

import asyncio
import uuid

from asking import ask
from fasta2a.client import A2AClient

DONE = ("completed", "failed", "canceled", "rejected", "input-required", "auth-required")
PAUSE_S = 0.1


async def send(url: str, text: str) -> str:
    """The text of the finished task's artifacts."""
    client = A2AClient(url)
    message = {"role": "user", "parts": [{"text": text}], "message_id": str(uuid.uuid4()), "kind": "message"}
    async with client.http_client:
        response = await client.send_message(message)
        if "error" in response:
            raise RuntimeError(response["error"])
        result = response["result"]
        if "message" in result:
            return words(result["message"]["parts"])
        task = result["task"]
        while state(task) not in DONE:
            await asyncio.sleep(PAUSE_S)
            looked = await client.get_task(task["id"])
            if "error" in looked:
                raise RuntimeError(looked["error"])
            task = looked["result"]
    return "".join(words(each["parts"]) for each in task.get("artifacts", ()))


def state(task: dict) -> str:
    """The task's state."""
    return task["status"]["state"]


def words(parts: list[dict]) -> str:
    """The texts of parts."""
    return "".join(part.get("text", "") for part in parts)


if __name__ == "__main__":
    ask(send)
