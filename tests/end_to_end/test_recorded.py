"""Every message is on record: what changed a task with the task, under the audit's digest; the rest as a log line."""

from typing import Any, Final
from uuid import uuid4

import pytest

from tests.end_to_end.every_dialect import Everyone, enveloped
from tests.end_to_end.world import eventually, fresh, log_lines
from tests.support.hub import ADMIN_TOKEN, HubProcess
from tests.support.speaking import Content

WORDS: Final = "the words of an assignment"
NOBODYS: Final = "ap_nobodys_business_1234567890abcdef"  # looks like a key, and stands where it does not belong


def covered(hub: HubProcess) -> int:
    """How many writes of calls the audit vouches for; all of them are as they were written."""
    found = hub.get("/v1/audit/verify").json
    assert found["ok"] is True, found
    calls: int = found["calls"]
    return calls


@pytest.mark.req("E-24")
def test_what_changes_a_task_is_stored_with_it_and_covered_by_the_audit(everyone: Everyone) -> None:
    hub = everyone.hub
    target = everyone.another("envelope").id
    before = covered(hub)
    seen = everyone.caller("envelope").call(target, Content(text=WORDS))
    assert seen.state == "completed", seen
    listed = hub.get(f"/v1/calls?agent={target}").json["items"]
    (call,) = listed
    shown = hub.get(f"/v1/calls/{call['id']}").json
    # In: what was assigned, and what the agent reported of it. Out: that it was sent on, and to whom.
    assert WORDS in str(shown["input"])
    assert WORDS in str(shown["result"])
    events: list[dict[str, Any]] = hub.get(f"/v1/calls/{call['id']}/events").json["items"]
    assert "sent" in [event["event"] for event in events]
    assert [event["data"]["status"] for event in events if event["event"] == "status"][-1] == "completed"
    assert covered(hub) > before


@pytest.mark.req("E-24")
def test_what_changes_none_is_a_log_line_without_what_was_said(everyone: Everyone) -> None:
    hub = everyone.hub
    target = everyone.agent("envelope").id
    sender = str(uuid4())
    hub.register({"id": sender, "name": "Giver", "version": "1.0.0", "supported_tasks": ["x"]})
    ping = enveloped(sender, target, "ping", {"nonce": NOBODYS})
    request = {"X-Request-ID": fresh("req")}
    assert hub.post("/a2a/messages", ping).status == 200
    refused = {**enveloped(sender, target, "status_update", {"task_id": NOBODYS, "status": "in_progress"})}
    assert hub.post("/a2a/messages", refused, request).status == 404

    def lines() -> tuple[dict[str, Any], dict[str, Any]] | None:
        said = log_lines(hub)
        pings = [line for line in said if line["message"] == "ping" and line.get("sender") == sender]
        refusals = [line for line in said if line.get("request_id") == request["X-Request-ID"]]
        return (pings[0], refusals[0]) if pings and refusals else None

    pinged, turned_away = eventually(lines, "a line of each")
    assert (pinged["level"], pinged["agent"]) == ("info", target)
    assert (turned_away["message"], turned_away["code"]) == ("refused", "TASK_NOT_FOUND")
    assert (turned_away["dialect"], turned_away["caller"]) == ("envelope", "admin")
    log = hub.log.read_text()
    assert NOBODYS not in log
    assert ADMIN_TOKEN not in log
