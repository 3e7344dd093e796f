"""The same thing in another dialect: every kind, from every dialect to every other, and what gets lost on the way."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.translation import Kind, Translation, translate
from dragoman.model.errors import BadParams, NotSupported

AT: Final = datetime(2026, 1, 12, 10, 0, tzinfo=UTC)
EXAMPLES: Final = Path(__file__).parents[1] / "examples"
SLUGS: Final = list(DIALECTS)
TEXT: Final = "hello"

# One message in each dialect's own words.
SENT: Final[dict[str, dict[str, Any]]] = {
    "a2a-1.0": {
        "jsonrpc": "2.0",
        "id": "7",
        "method": "SendMessage",
        "params": {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": TEXT}]}},
    },
    "a2a-0.3": {
        "jsonrpc": "2.0",
        "id": "7",
        "method": "message/send",
        "params": {
            "message": {
                "kind": "message",
                "messageId": "m-1",
                "role": "user",
                "parts": [{"kind": "text", "text": TEXT}],
            }
        },
    },
    "agentvault": {
        "jsonrpc": "2.0",
        "id": "7",
        "method": "tasks/send",
        "params": {"message": {"role": "user", "parts": [{"type": "text", "content": TEXT}]}},
    },
    "dotted": {
        "jsonrpc": "2.0",
        "id": "7",
        "method": "message.send",
        "params": {"message": {"role": "user", "parts": [{"kind": "text", "text": TEXT}]}},
    },
    "directory": {
        "jsonrpc": "2.0",
        "id": "7",
        "method": "a2a/task",
        "params": {"taskId": "t-1", "action": "echo", "input": {"text": TEXT}},
    },
    "platform": {"skill": "echo", "input": {"text": TEXT}},
    "envelope": json.loads((EXAMPLES / "envelope/task-assignment.strict.json").read_text()),
}
# One finished task in each dialect's own words.
ANSWERED: Final[dict[str, dict[str, Any]]] = {
    "a2a-1.0": {
        "jsonrpc": "2.0",
        "id": "7",
        "result": {
            "task": {
                "id": "t-1",
                "contextId": "c-1",
                "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-01T00:00:00.000Z"},
                "artifacts": [{"artifactId": "a-1", "name": "n", "parts": [{"text": TEXT}]}],
            }
        },
    },
    "a2a-0.3": {
        "kind": "task",
        "id": "t-1",
        "contextId": "c-1",
        "status": {"state": "completed"},
        "artifacts": [{"artifactId": "a-1", "parts": [{"kind": "text", "text": TEXT}]}],
    },
    "agentvault": json.loads((EXAMPLES / "agentvault/tasks-get-response.json").read_text()),
    "dotted": json.loads((EXAMPLES / "dotted/message-send-response.json").read_text()),
    "directory": json.loads((EXAMPLES / "directory/task-response.json").read_text()),
    "platform": json.loads((EXAMPLES / "platform/agent-answer.json").read_text()),
    "envelope": json.loads((EXAMPLES / "envelope/task-completion.strict.json").read_text()),
}
CARDS: Final[dict[str, dict[str, Any]]] = {
    slug: json.loads((EXAMPLES / path).read_text())
    for slug, path in {
        "agentvault": "agentvault/agent-card-none.json",
        "dotted": "dotted/agent-card.json",
        "directory": "directory/agent-response.json",
        "platform": "platform/agent-card.json",
        "envelope": "envelope/agent-card.json",
    }.items()
} | {
    "a2a-1.0": {
        "name": "X",
        "version": "1",
        "supportedInterfaces": [{"url": "http://x.test/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    },
    "a2a-0.3": {"name": "X", "version": "1", "protocolVersion": "0.3.0", "url": "http://x.test/"},
}


def put(body: dict[str, Any], source: str, target: str, kind: Kind | None = None) -> Translation:
    return translate(body, DIALECTS[source], DIALECTS[target], at=AT, kind=kind)


def lost(made: Translation) -> dict[str, str]:
    return {loss.facet: loss.becomes for loss in made.losses}


@pytest.mark.parametrize("target", SLUGS)
@pytest.mark.parametrize("source", SLUGS)
@pytest.mark.parametrize("kind", [Kind.REQUEST, Kind.ANSWER, Kind.CARD])
def test_what_one_dialect_says_every_other_says_too_and_can_read_again(kind: Kind, source: str, target: str) -> None:
    bodies = {Kind.REQUEST: SENT, Kind.ANSWER: ANSWERED, Kind.CARD: CARDS}[kind]
    made = put(bodies[source], source, target)
    assert made.kind is kind
    again = put(made.body, target, source, kind if kind is Kind.CARD else None)
    assert again.kind is kind


@pytest.mark.parametrize("source", [slug for slug in SLUGS if slug != "envelope"])
def test_the_words_arrive_in_every_dialect(source: str) -> None:
    for target in SLUGS:
        assert TEXT in json.dumps(put(SENT[source], source, target).body)


def test_a_framed_answer_stays_framed_under_its_own_id() -> None:
    made = put(ANSWERED["a2a-1.0"], "a2a-1.0", "a2a-0.3").body
    assert (made["id"], made["result"]["kind"], made["result"]["id"]) == ("7", "task", "t-1")
    assert made["result"]["status"] == {"state": "completed", "timestamp": "2026-01-01T00:00:00.000Z"}


def test_a_bare_task_becomes_a_bare_task_without_turns_that_nobody_showed() -> None:
    made = put(ANSWERED["a2a-0.3"], "a2a-0.3", "a2a-1.0").body
    assert (made["id"], made["status"]["state"]) == ("t-1", "TASK_STATE_COMPLETED")
    assert "history" not in made


def test_a_bare_message_becomes_a_bare_message_without_anything_of_a_call() -> None:
    message = SENT["a2a-0.3"]["params"]["message"]
    assert put(message, "a2a-0.3", "agentvault").body == SENT["agentvault"]["params"]["message"]
    made = put(message, "a2a-0.3", "a2a-1.0").body
    assert (made["role"], made["parts"], "metadata" in made) == ("ROLE_USER", [{"text": TEXT}], False)


def test_an_event_is_told_as_the_other_dialect_tells_it() -> None:
    update = {
        "kind": "status-update",
        "taskId": "t-1",
        "contextId": "c-1",
        "final": False,
        "status": {"state": "working", "message": {"role": "agent", "parts": [{"kind": "text", "text": "half"}]}},
    }
    made = put(update, "a2a-0.3", "agentvault")
    assert made.kind is Kind.EVENT
    assert (made.body["taskId"], made.body["state"], made.body["message"]) == ("t-1", "WORKING", "half")
    told = put(update, "a2a-0.3", "envelope").body
    assert (told["type"], told["payload"]["status"]) == ("status_update", "in_progress")
    told = put(update, "a2a-0.3", "a2a-1.0").body["statusUpdate"]
    assert (told["taskId"], told["status"]["state"]) == ("t-1", "TASK_STATE_WORKING")


def test_a_piece_of_an_answer_does_not_end_the_task() -> None:
    piece = {
        "artifactUpdate": {
            "taskId": "t-1",
            "contextId": "c",
            "artifact": {"artifactId": "a", "parts": [{"text": TEXT}]},
        }
    }
    made = put(piece, "a2a-1.0", "dotted").body
    assert (made["status"]["state"], made["artifacts"][0]["parts"][0]["text"]) == ("working", TEXT)
    with pytest.raises(NotSupported):
        put(piece, "a2a-1.0", "envelope")


def test_what_the_target_declares_is_listed_only_where_there_is_any_of_it() -> None:
    message = {**SENT["a2a-1.0"]["params"]["message"], "referenceTaskIds": ["t-0"]}
    plain, rich = (
        put({**SENT["a2a-1.0"], "params": {"message": each}}, "a2a-1.0", "directory")
        for each in (SENT["a2a-1.0"]["params"]["message"], message)
    )
    assert "message:references" not in lost(plain)
    assert lost(rich)["message:references"] == "left out"
    assert lost(plain)["part:text"] == 'the object {"text": …}'


def test_what_is_lost_without_a_word_is_found_by_reading_it_again() -> None:
    silent = msgspec.structs.replace(DIALECTS["platform"], losses=())
    made = translate(SENT["a2a-1.0"], DIALECTS["a2a-1.0"], silent, at=AT)
    assert lost(made)["part:text"] == "no field of its own"
    assert lost(put(SENT["a2a-1.0"], "a2a-1.0", "a2a-0.3")) == {}


def test_what_only_another_hub_would_find_again_is_lost() -> None:
    made = put(ANSWERED["agentvault"], "agentvault", "a2a-0.3")
    assert lost(made) == {"artifact:kind": "metadata.dragoman.kind of the artifact"}


def test_a_card_says_what_it_loses() -> None:
    assert lost(put(CARDS["platform"], "platform", "envelope"))["skill:input_schema"] == "no field of its own"
    assert lost(put(CARDS["platform"], "platform", "platform")) == {}


@pytest.mark.parametrize("target", ["platform", "directory", "envelope"])
def test_what_has_no_word_is_not_carried(target: str) -> None:
    with pytest.raises(NotSupported):
        put({"jsonrpc": "2.0", "id": "1", "method": "tasks/get", "params": {"id": "t"}}, "a2a-0.3", target)


def test_a_cancel_carries_its_reason() -> None:
    asked = {"jsonrpc": "2.0", "id": "1", "method": "task.cancel", "params": {"taskId": "t", "reason": "enough"}}
    assert put(asked, "dotted", "platform").body == {"call_id": "t", "reason": "enough"}


@pytest.mark.parametrize(
    ("body", "source"),
    [
        ({}, "a2a-1.0"),
        ({"jsonrpc": "2.0", "id": "1", "method": "message/send", "params": {}}, "a2a-0.3"),
        ({"jsonrpc": "2.0", "id": "1", "method": "SendMessage", "params": {}}, "dotted"),
        ({"event": "error", "data": {"code": 1}}, "agentvault"),
        (json.loads((EXAMPLES / "envelope/ping.strict.json").read_text()), "envelope"),
        (json.loads((EXAMPLES / "envelope/invalid-type.json").read_text()), "envelope"),
        ({"agents": []}, "directory"),
        ({"status": "running"}, "platform"),
    ],
)
def test_what_the_source_cannot_read_is_said_to_be_so(body: dict[str, Any], source: str) -> None:
    with pytest.raises(BadParams):
        put(body, source, "a2a-1.0")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.json")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_example_is_put_into_every_dialect_or_refused_with_a_reason(path: Path) -> None:
    body = json.loads(path.read_text())
    for target in SLUGS:
        try:
            assert put(body, path.parent.name, target).body is not None
        except (BadParams, NotSupported) as error:
            assert error.message


def test_a_signed_message_is_translated_like_any_other() -> None:
    signed = {**SENT["envelope"], "signature": "c2ln"}
    assert put(signed, "envelope", "platform").body == put(SENT["envelope"], "envelope", "platform").body
