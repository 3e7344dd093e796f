"""A look at a URL: what is asked, within which bounds, and what the answers come to."""

import json
from typing import Any

import pytest

from dragoman import __version__
from dragoman.delivery.probe import Verdict, document
from dragoman.delivery.probe.report import examined_card
from dragoman.dialects.a2a_v03.legacy import LEGACY
from dragoman.dialects.dotted.outbound import SLASH
from dragoman.model.errors import BadParams
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.net.errors import NetError, Reach
from tests.unit.delivery.strangers import Stranger, official, reply, rpc

URL = "http://agent.test/"
BROKEN = reply(500, b"Internal Server Error")
IN_10 = official((URL, "JSONRPC", "1.0"))
IN_03 = {"name": "X", "protocolVersion": "0.3.0", "url": URL, "preferredTransport": "JSONRPC"}
DOTTED = {"name": "X", "url": URL}
VAULT = {
    "schemaVersion": "1.0",
    "humanReadableId": "o/x",
    "agentVersion": "1",
    "name": "X",
    "description": "d",
    "url": URL,
    "provider": {"name": "P"},
    "capabilities": {"a2aVersion": "0.2"},
    "authSchemes": [{"scheme": "none"}],
}


def spoken(stranger: Stranger, **how: Any) -> list[tuple[str, str | None]]:
    card = stranger.look(**how).card
    return [] if card is None else [(each.dialect, each.version) for each in card.endpoints]


# The answers of real servers to the three questions, and what each server speaks.
@pytest.mark.parametrize(
    ("answers", "card", "expected"),
    [
        ((-32001, -32001, -32600), IN_10, [("a2a-1.0", "1.0"), ("a2a-0.3", "0.3")]),
        ((-32001, -32601, -32601), IN_10, [("a2a-1.0", "1.0")]),
        ((-32001, -32001, BROKEN), IN_10, [("a2a-1.0", "1.0")]),
        ((-32001, -32001, -32602), None, [("a2a-1.0", "1.0"), ("a2a-0.3", "0.3")]),
        ((-32601, -32001, -32602), IN_03, [("a2a-0.3", "0.3")]),
        ((-32601, -32601, -32602), None, [("a2a-0.3", "0.3")]),
        ((-32601, -32001, -32601), VAULT, [("agentvault", "0.2")]),
        ((-32601, -32001, -32601), None, [("agentvault", None)]),
        ((-32601, -32001, BROKEN), VAULT, [("agentvault", "0.2")]),
        ((-32601, -32001, -32603), None, [("a2a-0.3", "0.3")]),
        ((-32601, -32001, -32602), DOTTED, [("dotted", SLASH)]),
        ((-32009, -32603, BROKEN), IN_10, []),
        ((reply(404), reply(405), reply(500)), IN_03, []),
    ],
)
def test_what_is_spoken_is_read_from_three_answers_together(
    answers: tuple[int | HttpReply, ...], card: object, expected: list[tuple[str, str | None]]
) -> None:
    methods: dict[str, int | HttpReply] = dict(zip(("GetTask", "tasks/get", "message/send"), answers, strict=True))
    stranger = Stranger(rpc(methods, card, "/agent-card.json" if card is VAULT else "/.well-known/agent-card.json"))
    assert spoken(stranger) == expected
    assert stranger.methods[:3] == ["GetTask", "tasks/get", "message/send"]


def test_a_dotted_agent_that_knows_its_own_names_is_called_by_them() -> None:
    stranger = Stranger(rpc({"task.get": -32001}, DOTTED, "/.well-known/agent-card"))
    assert spoken(stranger) == [("dotted", None)]


def test_a_server_of_0_1_is_known_by_how_it_breaks() -> None:
    broken = reply(500, {"parts": [{"data": {"error": "x"}}], "role": "agent"})
    every = {"GetTask": broken, "tasks/get": broken, "message/send": broken}
    assert spoken(Stranger(rpc(every, IN_03))) == [("a2a-0.3", LEGACY)]
    assert spoken(Stranger(rpc(every))) == []


def test_an_endpoint_without_a_card_gets_a_small_one() -> None:
    card = examined_card(Stranger(rpc({"GetTask": -32001})).look("http://agent.test:8123/rpc"))
    assert (card.name, card.id) == ("agent.test:8123", "agt_agent_test_8123")
    assert [skill.id for skill in card.skills] == ["default"]
    assert [each.url for each in card.endpoints] == ["http://agent.test:8123/rpc"]


def test_nothing_but_the_three_is_asked_where_something_answers() -> None:
    stranger = Stranger(rpc({"GetTask": -32001}, IN_10))
    stranger.look()
    assert len(stranger.asked) == 2 + 3
    assert Stranger(rpc({"GetTask": -32001}, IN_10)).look(everything=True).everything


@pytest.mark.parametrize(
    ("method", "path", "answer", "dialect", "url"),
    [
        ("task.get", "", -32001, "dotted", URL),
        ("a2a/discover", "", reply(200, {"jsonrpc": "2.0", "id": "1", "result": {"agents": []}}), "directory", URL),
        ("a2a/task", "", -32602, "directory", URL),
        (None, "/a2a/messages", reply(200, {"status": "success", "nonce": "dragoman-probe"}), "envelope", URL),
        (None, "/v1/a2a/discover?limit=1", reply(200, {"agents": []}), "platform", f"{URL}v1/a2a/call"),
    ],
)
def test_other_dialects_are_asked_for_while_nothing_answers(
    method: str | None, path: str, answer: int | HttpReply, dialect: str, url: str
) -> None:
    framed = rpc({} if method is None else {method: answer})

    def says(request: HttpRequest) -> HttpReply:
        if method is None and request.url.endswith(path) and isinstance(answer, HttpReply):
            return answer
        return framed(request)

    card = examined_card(Stranger(says).look())
    assert [(each.dialect, each.url) for each in card.endpoints] == [(dialect, url)]


def test_tasks_over_http_are_told_from_a_plain_404() -> None:
    v10 = reply(404, {"error": {"code": 404, "details": [{"reason": "TASK_NOT_FOUND"}]}})
    v03 = reply(404, {"message": "Task not found: x"})
    for path, answer, dialect in (("/tasks/", v10, "a2a-1.0"), ("/v1/tasks/", v03, "a2a-0.3")):

        def says(request: HttpRequest, path: str = path, answer: HttpReply = answer) -> HttpReply:
            here = request.url.startswith(f"http://agent.test{path}")
            return answer if here else reply(404, {"detail": "Not Found"})

        card = examined_card(Stranger(says).look())
        assert [(each.dialect, each.binding.value) for each in card.endpoints] == [(dialect, "HTTP+JSON")]
    assert Stranger(lambda _: reply(404, {"detail": "Not Found"})).look().verdict is Verdict.NO_AGENT


def test_the_cards_order_decides_then_the_hubs() -> None:
    both = official((URL, "JSONRPC", "0.3"))
    assert spoken(Stranger(rpc({"GetTask": -32001, "message/send": -32602}, both))) == [
        ("a2a-0.3", "0.3"),
        ("a2a-1.0", "1.0"),
    ]


def test_a_dialect_that_is_named_is_asked_for_first_and_used_first() -> None:
    answers = {"GetTask": -32001, "message/send": -32602, "task.get": -32001}
    stranger = Stranger(rpc(answers, IN_10))
    assert spoken(stranger, named="dotted")[0] == ("dotted", None)
    assert stranger.methods[0] == "task.get"


@pytest.mark.parametrize("status", [404, 405, 307, 308])
def test_an_address_that_works_only_with_its_other_slash_is_called_by_that(status: int) -> None:
    answers = rpc({"GetTask": -32001}, official(("http://agent.test/x", "JSONRPC", "1.0")))

    def says(request: HttpRequest) -> HttpReply:
        return reply(status) if request.url == "http://agent.test/x" else answers(request)

    examined = Stranger(says).look()
    assert examined_card(examined).endpoints[0].url == "http://agent.test/x/"
    assert [each.id for each in examined.oddities] == ["Q16" if status in (307, 308) else "Q14"]


def test_a_host_that_is_none_becomes_the_one_where_the_card_was() -> None:
    examined = Stranger(rpc({"GetTask": -32001}, official(("http://0.0.0.0:9/", "JSONRPC", "1.0")))).look()
    assert examined_card(examined).endpoints[0].url == "http://agent.test/"
    assert [each.id for each in examined.oddities] == ["Q34"]


def test_a_card_that_wants_to_know_which_agent_is_meant_is_told_of() -> None:
    wants = {"error": {"code": -32602, "message": "Missing required query parameter: assistant_id"}}
    examined = Stranger(lambda request: reply(400, wants) if "agent-card" in request.url else reply(404)).look()
    assert [each.id for each in examined.oddities] == ["Q21"]
    with pytest.raises(BadParams, match="assistant_id"):
        examined_card(examined)


def test_a_card_that_cannot_be_read_does_not_hide_the_agent() -> None:
    examined = Stranger(rpc({"GetTask": -32001}, {"supportedInterfaces": [], "name": "X"})).look()
    assert "supportedInterfaces" in examined.problem
    assert examined_card(examined).name == "agent.test"


def test_a_card_that_claims_what_nobody_answers_is_refused_with_every_request() -> None:
    examined = Stranger(rpc({}, IN_10)).look()
    assert examined.verdict is Verdict.UNUSABLE
    with pytest.raises(BadParams) as refused:
        examined_card(examined)
    assert any("GetTask" in line and "-32601" in line for line in refused.value.details["seen"])


def test_there_are_bounds_to_what_is_asked() -> None:
    stranger = Stranger(lambda _: reply(404))
    stranger.look("http://agent.test/some/where")
    assert len(stranger.asked) == 24
    assert max(stranger.deadlines) <= 5.0


def test_all_of_it_takes_half_a_minute_at_most() -> None:
    stranger = Stranger(lambda _: reply(404), takes_s=4.0)
    stranger.look("http://agent.test/some/where")
    assert stranger.clock.monotonic() <= 30.0
    assert len(stranger.asked) == 8


def test_a_host_that_does_not_answer_twice_is_left_alone() -> None:
    stranger = Stranger(lambda _: reply(404), takes_s=9.0)
    assert stranger.look().verdict is Verdict.SILENT
    assert len(stranger.asked) == 2


@pytest.mark.parametrize("reach", [Reach.REFUSED, Reach.UNRESOLVED, Reach.FORBIDDEN, Reach.TLS])
def test_where_nobody_can_be_reached_one_request_is_enough(reach: Reach) -> None:
    def says(_: HttpRequest) -> HttpReply:
        raise NetError(reach)

    stranger = Stranger(says)
    examined = stranger.look()
    assert (examined.verdict, examined.reach, len(stranger.asked)) == (Verdict.SILENT, reach.value, 1)


def test_every_request_says_who_asks_and_about_a_task_that_nobody_has() -> None:
    stranger = Stranger(rpc({}))
    stranger.look(everything=True)
    assert {each.headers[b"user-agent"] for each in stranger.asked} == {f"dragoman-doctor/{__version__}".encode()}
    ids = {json.loads(each.body)["params"]["id"] for each in stranger.asked if b'"GetTask"' in each.body}
    assert len(ids) == 1
    assert stranger.look().tried
    later = {json.loads(each.body)["params"]["id"] for each in stranger.asked if b'"GetTask"' in each.body}
    assert len(later) == 2
    versions = {
        json.loads(each.body)["method"]: each.headers.get(b"a2a-version")
        for each in stranger.asked
        if each.body and "method" in json.loads(each.body)
    }
    assert (versions["GetTask"], versions["tasks/get"], versions["message/send"]) == (b"1.0", None, None)


def test_a_credential_is_shown_only_where_one_is_wanted_and_only_to_the_origin_given() -> None:
    inner = rpc({"GetTask": -32001}, official((URL, "JSONRPC", "1.0"), ("http://other.test/", "JSONRPC", "0.3")))

    def says(request: HttpRequest) -> HttpReply:
        if request.method == "POST" and b"authorization" not in request.headers:
            return reply(401, None, www_authenticate='Bearer realm="x"')
        return inner(request)

    stranger = Stranger(says)
    examined = stranger.look(credentials={b"authorization": b"Bearer s3cret"})
    shown = [each for each in stranger.asked if b"authorization" in each.headers]
    assert shown
    assert all(each.url.startswith("http://agent.test/") for each in shown)
    assert all(stranger.asked[stranger.asked.index(each) - 1].url == each.url for each in shown)
    assert [(each.dialect, each.locked) for each in examined.spoken if each.answered] == [
        ("a2a-1.0", False),
        ("a2a-0.3", True),
    ]


def test_who_wants_a_credential_is_believed_what_its_card_says() -> None:
    answer = reply(401, None, www_authenticate="Bearer")
    examined = Stranger(rpc({"GetTask": answer, "tasks/get": answer, "message/send": answer}, IN_10)).look()
    assert (examined.verdict, examined.challenge) == (Verdict.LOCKED, "Bearer")
    assert [each.dialect for each in examined_card(examined).endpoints] == ["a2a-1.0"]
    nameless = Stranger(rpc({"GetTask": answer, "tasks/get": answer, "message/send": answer})).look()
    assert (nameless.verdict, nameless.card) == (Verdict.LOCKED, None)


def test_the_clocks_are_compared_as_far_as_whole_seconds_tell() -> None:
    examined = Stranger(lambda _: reply(404, None, date="Wed, 01 Jul 2026 12:01:40 GMT")).look()
    assert examined.clock_skew_s == pytest.approx(100.5, abs=0.6)
    assert Stranger(lambda _: reply(404, None, date="rubbish")).look().clock_skew_s is None


def test_a_platform_agent_is_not_called_to_be_looked_at() -> None:
    card = {"name": "P", "description": "d", "version": "1", "skills": [{"name": "s"}], "endpoint": URL}
    stranger = Stranger(rpc({}, card))
    examined = stranger.look()
    assert [each.method for each in stranger.asked if each.method != "GET"] == []
    assert [each.dialect for each in examined_card(examined).endpoints] == ["platform"]


def test_nulls_and_foreign_ids_are_noticed() -> None:
    answer = reply(200, {"jsonrpc": "2.0", "id": "unknown", "error": {"code": -32001, "message": "x"}})
    assert [each.id for each in Stranger(rpc({"GetTask": answer})).look().oddities] == ["Q29"]


def test_what_is_kept_of_a_look_is_json_and_names_every_dialect() -> None:
    kept = document(Stranger(rpc({"GetTask": -32001, "message/send": -32602}, IN_10)).look())
    assert json.loads(json.dumps(kept)) == kept
    assert [(each["name"], each["claimed"], each["answered"]) for each in kept["dialects"]] == [
        ("a2a-1.0", True, True),
        ("a2a-0.3", False, True),
    ]
    assert kept["card"]["kind"] == "a2a-1.0"
    assert [each["id"] for each in kept["quirks"]] == ["Q14"]
