"""Calls that steps follow: each step is a call of its own, and the first ends with the last result or first failure."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest

from tests.end_to_end.every_dialect import SLUGS, Everyone
from tests.end_to_end.world import call_line, eventually, failing_paths, fresh, join, refused, skill
from tests.support.hub import HubProcess, Reply
from tests.support.platform_agent import Answer, PlatformAgent, platform_agent
from tests.support.speaking import QUESTION
from tests.support.sse_client import sse

ONE_AN_HOUR = {"requests_per_hour": 1}
Body = dict[str, Any]
Does = Body | Answer | Callable[[Body], Body | Answer]  # its result, its whole answer, or what makes one of them


class Team:
    """One agent with fresh skills, so that a step without an agent finds it, and nobody else."""

    def __init__(self, hub: HubProcess, agent: PlatformAgent, *skills: str, **card: Any) -> None:
        self.hub = hub
        self.agent = agent
        self.names = {each: fresh(each) for each in skills}
        self.does: dict[str, Does] = {}
        shown = [skill(name) for name in self.names.values()]
        registered = join(hub, agent, skills=shown, **card)
        self.id: str = registered["id"]
        self.token: str = registered["token"]
        agent.respond = self._respond

    def _respond(self, body: Body) -> Body | Answer:
        word = next(word for word, name in self.names.items() if name == body["skill"])
        does = self.does.get(word, {"did": word, "from": body["input"]})
        answer = does(body) if callable(does) else does
        return answer if isinstance(answer, tuple) else {"status": "completed", "result": answer}

    def step(self, word: str, **more: Any) -> Body:
        return {"skill": self.names[word], **more}

    def call(self, word: str, given: Body, *then: Any, path: str = "", **more: Any) -> Reply:
        headers, token = more.pop("headers", None), more.pop("token", "")
        body = {"skill": self.names[word], "input": given, "then": list(then), **more}
        return self.hub.post(f"/v1/a2a/call{path}", body, headers, token)

    def asked(self, word: str) -> list[Body]:
        """What the agent was sent for one of its skills."""
        return [body for _, _, body in self.agent.requests if body.get("skill") == self.names[word]]

    def status(self, call_id: str) -> Body:
        shown: Body = self.hub.get(f"/v1/a2a/call/{call_id}/status").json
        return shown

    def ended(self, call_id: str) -> Body:
        """The status of a call, once it has ended."""

        def look() -> Body | None:
            shown = self.status(call_id)
            return shown if shown["status"] not in ("queued", "running") else None

        return eventually(look, f"{call_id} ends")


@pytest.mark.req("R-12")
def test_each_step_is_given_the_result_of_the_one_before(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "analyze", "write")
    reply = team.call("search", {"query": "tides"}, team.step("analyze"), team.step("write"))
    assert reply.status == 200, reply.body
    searched = {"did": "search", "from": {"query": "tides"}}
    analyzed = {"did": "analyze", "from": searched}
    answer = reply.json
    assert (answer["status"], answer["result"]) == ("completed", {"did": "write", "from": analyzed})
    assert [len(team.asked(word)) for word in team.names] == [1, 1, 1]
    # The steps are calls of their own, in the same conversation and trace, for the same caller.
    sent = [(headers, body) for _, headers, body in agent.requests]
    assert [body["call_id"] for _, body in sent] == [f"{answer['id']}-{n}" for n in range(3)]
    assert len({body["context"]["conversation_id"] for _, body in sent}) == 1
    assert {headers["x-trace-id"] for headers, _ in sent} == {answer["trace"]["trace_id"]}
    spans = hub.get(f"/v1/traces/{answer['id']}").json["spans"]
    steps = {f"span_{each['span_id']}": each["name"] for each in spans}
    assert [steps[headers["x-parent-span-id"]] for headers, _ in sent] == ["step 0", "step 1", "step 2"]
    assert len({headers["x-span-id"] for headers, _ in sent}) == 3
    child = team.status(f"{answer['id']}-1")
    assert (child["status"], child["result"]) == ("completed", analyzed)
    assert call_line(hub, answer["id"])["status"] == "completed"


@pytest.mark.req("R-12")
def test_steps_in_a_list_run_at_once_and_their_results_are_a_list(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "left", "right", "join")
    both = threading.Barrier(2, timeout=10)

    def meets(body: Body) -> Body:
        both.wait()
        return {"side": body["skill"].split("_")[0]}

    team.does |= {"left": meets, "right": meets}
    side_by_side = [team.step("left"), team.step("right", input={"own": True})]
    answer = team.call("search", {}, side_by_side, team.step("join")).json
    assert answer["status"] == "completed", answer
    assert team.asked("left")[0]["input"] == {"did": "search", "from": {}}
    assert team.asked("right")[0]["input"] == {"own": True}
    assert team.asked("join")[0]["input"] == {"results": [{"side": "left"}, {"side": "right"}]}
    last = team.call("search", {}, side_by_side).json
    assert last["result"] == {"results": [{"side": "left"}, {"side": "right"}]}
    assert {body["call_id"] for body in team.asked("left")[1:]} == {f"{last['id']}-1.1"}


@pytest.mark.req("R-12")
def test_an_input_takes_results_from_any_step_before(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "left", "right", "write", "say")
    team.does |= {
        "search": {"results": [{"u/r~l": "one"}, "two"], "none": None},
        "left": {"words": ["a", "b"]},
        "right": {"n": 2},
        "say": lambda body: {"said": body["input"]},
    }
    steps = [
        [team.step("left", id="l"), team.step("right", id="r", input={"all": {"$from": "-"}})],
        team.step(
            "write",
            id="w",
            input={
                "first": {"$from": "0#/results/1"},
                "odd": [{"$from": "0#/results/0/u~1r~0l"}, {"deep": {"$from": "l#/words"}}],
                "whole": {"$from": "r"},
                "before": {"$from": "-#/1/n"},
                "null": {"$from": "0#/none"},
                "not": {"$from": "0", "else": 1},
                "kept": "$from",
            },
        ),
        team.step("say", input={"$from": "0#/results/1"}),
        team.step("say", input={"$from": "r#/n"}),
        team.step("say", input={"$from": "l#/words"}),
        team.step("say", input={"$from": "w#"}),
    ]
    answer = team.call("search", {}, *steps).json
    assert answer["status"] == "completed", answer
    assert team.asked("right")[0]["input"] == {"all": team.does["search"]}
    written = team.asked("write")[0]["input"]
    assert written == {
        "first": "two",
        "odd": ["one", {"deep": ["a", "b"]}],
        "whole": {"n": 2},
        "before": 2,
        "null": None,
        "not": {"$from": "0", "else": 1},
        "kept": "$from",
    }
    said = [body["input"] for body in team.asked("say")]
    assert said == [{"text": "two"}, {"value": 2}, {"results": ["a", "b"]}, {"did": "write", "from": written}]


BAD: dict[str, tuple[Any, str]] = {
    "unknown": ([{"skill": "s", "input": {"a": {"$from": "nobody"}}}], "then[0].input.a"),
    "itself": ([{"skill": "s", "id": "me", "input": {"$from": "me"}}], "then[0].input"),
    "later": ([{"skill": "s", "input": [{"$from": "z"}]}, {"skill": "s", "id": "z"}], "then[0].input"),
    "later step": ([{"skill": "s", "input": {"$from": "z"}}, {"skill": "s", "id": "z"}], "then[0].input"),
    "beside": ([[{"skill": "s", "id": "x"}, {"skill": "s", "input": {"y": {"$from": "x"}}}]], "then[0][1].input.y"),
    "twice": ([{"skill": "s", "id": "x"}, [{"skill": "s", "id": "x"}]], "then[1][0].id"),
    "taken id": ([{"skill": "s", "id": "0"}], "then[0].id"),
    "no pointer": ([{"skill": "s", "input": {"a": [{"$from": "0#results"}]}}], "then[0].input.a[0]"),
    "bad escape": ([{"skill": "s", "input": {"a": {"$from": "0#/~2"}}}], "then[0].input.a"),
    "no text": ([{"skill": "s", "input": {"$from": 0}}], "then[0].input"),
    "no skill": ([{"id": "x"}], "then[0].skill"),
    "no step": ([7], "then[0]"),
    "no list": ({"skill": "s"}, "then"),
    "empty list": ([[]], "then[0]"),
    "list in list": ([[[{"skill": "s"}]]], "then[0][0]"),
    "too many": ([{"skill": "s"}] * 40 + [[{"skill": "s"}] * 11], "then"),
    "too many references": ([{"skill": "s", "input": {"a": [{"$from": "0"}] * 101}}], "then[0].input"),
}


@pytest.mark.req("R-12")
@pytest.mark.parametrize("case", sorted(BAD))
@pytest.mark.parametrize("path", ["", "/async", "/stream"])
def test_wrong_steps_are_refused_before_anything_is_sent(
    hub: HubProcess, agent: PlatformAgent, case: str, path: str
) -> None:
    then, place = BAD[case]
    team = Team(hub, agent, "search")
    body: Body = {"skill": team.names["search"], "input": {}, "then": then}
    error = refused(hub.post(f"/v1/a2a/call{path}", body), 400, "VALIDATION_ERROR")
    assert failing_paths(error) == {place}
    assert agent.requests == []


def test_steps_follow_a_new_call_only(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search")
    context = {"continue_call_id": "a2a_call_some"}
    reply = team.call("search", {}, {"skill": "s"}, context=context)
    assert failing_paths(refused(reply, 400, "VALIDATION_ERROR")) == {"then"}
    assert team.call("search", {"no": "steps"}).json["result"] == {"did": "search", "from": {"no": "steps"}}


@pytest.mark.req("R-12")
def test_the_first_failure_ends_the_workflow_and_names_its_step(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "break", "write")
    failed = {"status": "failed", "error": {"code": "NO_LUCK", "message": "It broke.", "details": {"why": "x"}}}
    team.does["break"] = (200, {}, msgspec.json.encode(failed))
    reply = team.call("search", {}, team.step("break", id="middle"), team.step("write"))
    error = refused(reply, 502, "AGENT_ERROR")
    assert error["message"] == "It broke."
    call_id = reply.json["id"]
    assert (error["details"]["step"], error["details"]["step_call_id"]) == ("middle", f"{call_id}-1")
    assert team.asked("write") == []
    assert team.status(call_id)["error"]["details"]["step"] == "middle"


@pytest.mark.req("R-12")
def test_a_step_that_fails_beside_others_ends_them(hub: HubProcess) -> None:
    with platform_agent() as one, platform_agent() as two:
        team, slow = Team(hub, one, "search", "break"), Team(hub, two, "wait")
        slow.does["wait"] = lambda _: {"late": two.release.wait(20)}
        team.does["break"] = lambda _: (500 if two.arrived.wait(10) else 200, {}, b"{}")
        error = refused(team.call("search", {}, [slow.step("wait"), team.step("break")]), 502, "AGENT_ERROR")
        assert error["details"]["step"] == "1.2"
        assert two.cancelled.wait(10)


@pytest.mark.parametrize(
    ("step", "status", "code"),
    [
        ({"skill": "nobody_has_this"}, 404, "AGENT_NOT_FOUND"),
        ({"skill": "write", "agent": "agt_nobody"}, 404, "AGENT_NOT_FOUND"),
        ({"skill": "write", "input": {"x": {"$from": "0#/not/there"}}}, 400, "VALIDATION_ERROR"),
    ],
)
def test_a_step_that_cannot_be_called_ends_the_workflow(
    hub: HubProcess, agent: PlatformAgent, step: Body, status: int, code: str
) -> None:
    team = Team(hub, agent, "search", "write")
    reply = team.call("search", {}, {**step, "skill": team.names.get(step["skill"], step["skill"])})
    error = refused(reply, status, code)
    assert error["details"]["step"] == "1"
    assert len(agent.requests) == 1


def test_an_input_that_does_not_fit_its_skill_ends_the_workflow(hub: HubProcess, agent: PlatformAgent) -> None:
    strict = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    names = fresh("search"), fresh("count")
    join(hub, agent, skills=[skill(names[0]), skill(names[1], input_schema=strict)])
    reply = hub.call(names[0], {"n": "three"}, then=[{"skill": names[1]}])
    error = refused(reply, 400, "VALIDATION_ERROR")
    assert (error["details"]["step"], failing_paths(error)) == ("1", {"n"})
    assert hub.call(names[0], {"n": 3}, then=[{"skill": names[1]}]).json["result"] == {"n": 3}


@pytest.mark.req("R-12")
def test_a_step_is_allowed_no_more_than_its_caller(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "write")
    key = hub.new_key(allow=[f"{team.id}:{team.names['search']}"])
    error = refused(team.call("search", {}, team.step("write"), token=key), 403, "AUTHORIZATION_ERROR")
    assert error["details"]["step"] == "1"
    assert team.asked("write") == []


def test_a_key_that_is_revoked_meanwhile_opens_no_further_step(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "write")
    made = hub.post("/v1/keys", {"name": "test", "scopes": ["a2a:call"]}).json

    def revoke(_: Body) -> Body:
        assert hub.request("DELETE", f"/v1/keys/{made['key_id']}").status in (200, 204)
        return {}

    team.does["search"] = revoke
    error = refused(team.call("search", {}, team.step("write"), token=made["key"]), 403, "AUTHORIZATION_ERROR")
    assert (error["details"]["step"], error["details"]["reason"]) == ("1", "revoked")


@pytest.mark.req("R-12")
def test_an_accepted_workflow_shows_its_step_and_calls_back_once(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "write")
    team.does["write"] = lambda body: {"freed": agent.release.wait(20), "from": body["input"]}
    with platform_agent() as sink:
        callback = {"url": sink.endpoint}
        accepted = team.call("search", {}, team.step("write"), path="/async", callback=callback)
        assert (accepted.status, accepted.json["status"]) == (202, "queued")
        call_id = accepted.json["call_id"]
        eventually(lambda: team.asked("write"), "the second step begins")
        shown = team.status(call_id)
        assert (shown["status"], shown["progress"]) == ("running", 0.5)
        assert shown["message"] == f"Step 2 of 2: {team.names['write']}"
        agent.release.set()
        ended = team.ended(call_id)
        assert ended["result"] == {"freed": True, "from": {"did": "search", "from": {}}}
        eventually(lambda: sink.requests, "the callback comes")
        told = [body for _, _, body in sink.requests]
        assert [(body["call_id"], body["result"]) for body in told] == [(call_id, ended["result"])]


@pytest.mark.req("R-12")
def test_a_streamed_workflow_tells_its_steps_and_ends_with_the_result(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "left", "right")
    body: Body = {"skill": team.names["search"], "input": {}, "then": [[team.step("left"), team.step("right")]]}
    credential = {"Authorization": f"Bearer {hub.token}"}
    with sse(f"{hub.url}/v1/a2a/call/stream", body, headers=credential) as stream:
        events = [(item.name, item.data) for item in stream]
    names = team.names
    assert [name for name, _ in events] == ["start", "progress", "progress", "complete", "done"]
    assert events[1][1] == {"progress": 0, "message": f"Step 1 of 2: {names['search']}"}
    assert events[2][1] == {"progress": 0.5, "message": f"Step 2 of 2: {names['left']}, {names['right']}"}
    assert [each["did"] for each in events[3][1]["result"]["results"]] == ["left", "right"]


@pytest.mark.req("R-12")
def test_cancelling_the_first_call_cancels_the_step_that_runs(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "wait", "write")
    team.does["wait"] = lambda _: {"freed": agent.release.wait(20)}
    call_id = team.call("search", {}, team.step("wait"), team.step("write"), path="/async").json["call_id"]
    eventually(lambda: team.asked("wait"), "the second step begins")
    cancelled = hub.post(f"/v1/a2a/call/{call_id}/cancel", {})
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelled")
    assert team.ended(f"{call_id}-1")["status"] == "cancelled"
    assert agent.cancelled.wait(10)
    agent.release.set()
    assert team.asked("write") == []


def test_cancelling_a_step_ends_the_workflow(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "wait", "write")
    team.does["wait"] = lambda _: {"freed": agent.release.wait(20)}
    call_id = team.call("search", {}, team.step("wait", id="w"), team.step("write"), path="/async").json["call_id"]
    eventually(lambda: team.asked("wait"), "the second step begins")
    assert hub.post(f"/v1/a2a/call/{call_id}-1/cancel", {}).status == 200
    error = team.ended(call_id)["error"]
    assert (error["details"]["step"], error["details"]["reason"]) == ("w", "cancelled")


@pytest.mark.req("R-12")
def test_the_first_calls_time_bounds_the_whole(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "wait", "write")
    team.does["wait"] = lambda _: {"freed": agent.release.wait(20)}
    steps = team.step("wait"), team.step("write")
    reply = team.call("search", {}, *steps, options={"timeout_ms": 1000})
    error = refused(reply, 504, "AGENT_TIMEOUT")
    assert (error["details"]["step"], error["details"]["timeout_ms"] <= 1000) == ("1", True)
    assert team.asked("search")[0]["options"]["timeout_ms"] <= 1000
    assert team.asked("wait")[0]["options"]["timeout_ms"] < team.asked("search")[0]["options"]["timeout_ms"]
    assert agent.cancelled.wait(10)
    assert team.status(reply.json["id"])["status"] == "failed"
    assert team.asked("write") == []


def test_a_question_that_nobody_can_answer_ends_the_workflow(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search")
    with ExitStack() as stack:
        asking = Everyone(hub, stack).agent("a2a-1.0")
        step = {"id": "why", "skill": "echo", "agent": asking.id, "input": {"$from": "0#/word"}}
        team.does["search"] = {"word": "ask"}
        error = refused(team.call("search", {}, step), 502, "AGENT_ERROR")
        assert (error["details"]["step"], error["details"]["reason"]) == ("why", "input_required")
        assert error["message"] == QUESTION
        assert asking.stub.cancelled.wait(10)


@pytest.mark.req("R-12", "P-30")
def test_a_step_waits_for_its_agents_limit_and_goes_on(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "write", rate_limits={"requests_per_minute": 60})

    def uses_it_up(_: Body) -> Body:
        while team.call("write", {}).status == 200:
            pass
        return {"found": True}

    team.does["search"] = uses_it_up
    answer = team.call("search", {}, team.step("write")).json
    assert (answer["status"], answer.get("result")) == ("completed", {"did": "write", "from": {"found": True}}), answer


@pytest.mark.req("R-12", "P-30")
def test_a_step_whose_turn_comes_too_late_fails_at_once(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "write", rate_limits=ONE_AN_HOUR)
    error = refused(team.call("search", {}, team.step("write")), 429, "RATE_LIMITED")
    assert (error["details"]["step"], error["details"]["retry_after"]) == ("1", 3600)
    assert team.asked("write") == []


@pytest.mark.req("R-12")
def test_a_step_that_waits_is_cancelled_with_its_workflow(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "write", rate_limits=ONE_AN_HOUR)
    call_id = team.call("search", {}, team.step("write"), path="/async").json["call_id"]
    eventually(lambda: team.status(call_id).get("progress") == 0.5, "the second step is due")
    assert hub.post(f"/v1/a2a/call/{call_id}/cancel", {}).json["status"] == "cancelled"
    assert hub.get(f"/v1/a2a/call/{call_id}-1/status").status == 404
    assert team.asked("write") == []


@pytest.mark.req("R-12")
def test_a_step_that_waits_holds_up_none_beside_it(hub: HubProcess, agent: PlatformAgent) -> None:
    with platform_agent() as other:
        team, busy = Team(hub, agent, "search", "fine", "break"), Team(hub, other, "wait", rate_limits=ONE_AN_HOUR)
        assert busy.call("wait", {}).status == 200
        team.does["break"] = lambda _: (500 if team.asked("fine") else 200, {}, b"{}")
        steps = [busy.step("wait"), team.step("fine"), team.step("break")]
        call_id = team.call("search", {}, steps, path="/async").json["call_id"]
        error = team.ended(call_id)["error"]
        assert (error["code"], error["details"]["step"]) == ("AGENT_ERROR", "1.3")
        assert len(busy.asked("wait")) == 1


@pytest.mark.req("R-12")
def test_a_workflow_goes_through_agents_of_every_dialect(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "sum")
    team.does["search"] = {"q": "ü", "n": [1, 2.5, None]}
    with ExitStack() as stack:
        everyone = Everyone(hub, stack)
        steps = [{"skill": "echo", "agent": everyone.agent(slug).id, "id": slug} for slug in SLUGS]
        reply = team.call("search", {}, *steps, [{**step, "id": None} for step in steps], team.step("sum"))
    assert reply.status == 200, reply.body
    assert team.asked("sum")[0]["input"] == {"results": [team.does["search"]] * len(SLUGS)}


@pytest.mark.req("R-12")
def test_steps_go_to_one_agent_again_but_never_back_to_who_waits(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "write")
    with platform_agent() as one, platform_agent() as two:
        asks, plans = Team(hub, one, "asks"), Team(hub, two, "plan")

        def planned(body: Body) -> Body:
            """Start a workflow from within a call: it ends with a step at the one who waits for all this."""
            back = {"skill": asks.names["asks"], "agent": asks.id}
            context = {"parent_execution_id": body["call_id"]}
            steps = team.step("write"), team.step("search"), back
            error: Body = team.call("search", {}, *steps, context=context, token=plans.token).json["error"]
            return error

        plans.does["plan"] = planned
        error = plans.call("plan", {}, token=asks.token).json["result"]
        assert (error["details"]["step"], error["details"]["chain"]) == ("3", [asks.id, plans.id, asks.id])
        chains = [body["context"]["call_chain"] for _, _, body in agent.requests]
        assert chains == [[asks.id, plans.id]] * 3
        assert one.requests == []


def test_what_the_steps_used_is_added_up(hub: HubProcess, agent: PlatformAgent) -> None:
    name = fresh("count")
    join(hub, agent, skills=[skill(name)])
    usage = hub.call(name, {}, then=[{"skill": name}, [{"skill": name}, {"skill": name}]]).json["usage"]
    assert usage["tokens"] == 12
    assert usage["cost_usd"] == pytest.approx(0.004)


def test_a_repeat_under_the_same_key_joins_the_workflow(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "write")
    key = {"Idempotency-Key": fresh("key")}
    first = team.call("search", {}, team.step("write"), headers=key)
    again = team.call("search", {}, team.step("write"), headers=key)
    assert first.json["call_id"] == again.json["call_id"]
    assert first.json["result"] == again.json["result"]
    assert len(agent.requests) == 2
    other = team.call("search", {}, team.step("write", input={}), headers=key)
    assert other.status == 409


def test_results_that_are_named_too_often_are_refused_before_they_are_copied(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    team = Team(hub, agent, "search", "write")
    team.does["search"] = {"big": "x" * 1_000_000}
    copies = {"input": {"all": [{"$from": "0"}] * 50}}
    error = refused(team.call("search", {}, team.step("write", **copies)), 413, "VALIDATION_ERROR")
    assert (error["details"]["step"], error["details"]["reason"]) == ("1", "too_large")
    assert team.asked("write") == []


def directory_task(hub: HubProcess, name: str, steps: Any, **params: Any) -> Reply:
    """A directory's task with steps, as JSON-RPC."""
    asked = {"taskId": fresh("task"), "action": name, "input": {"q": 1}, "steps": steps, **params}
    return hub.post("/a2a/task", {"jsonrpc": "2.0", "id": 1, "method": "a2a/task", "params": asked})


@pytest.mark.req("R-12")
def test_a_directorys_task_is_followed_by_its_steps(hub: HubProcess, agent: PlatformAgent) -> None:
    team = Team(hub, agent, "search", "left", "right", "write")
    steps = [
        [{"action": team.names["left"], "id": "l"}, {"action": team.names["right"], "agent": team.id}],
        {"action": team.names["write"], "input": {"l": {"$from": "l#/did"}, "q": {"$from": "0#/from/q"}}},
    ]
    answer: Body = directory_task(hub, team.names["search"], steps).json
    assert answer["result"]["status"] == "completed", answer
    assert answer["result"]["output"] == {"did": "write", "from": {"l": "left", "q": 1}}


@pytest.mark.parametrize(
    ("steps", "place"),
    [
        ([{"skill": "x"}], "steps[0].action"),
        ([{"action": "x", "input": {"a": {"$from": "y"}}}], "steps[0].input.a"),
        ([{"action": "x", "id": "a"}, {"action": "x", "id": "a"}], "steps[1].id"),
        ([{"action": "x"}] * 51, "steps"),
        ("x", "steps"),
    ],
)
def test_wrong_steps_of_a_directorys_task_are_refused(
    hub: HubProcess, agent: PlatformAgent, steps: Any, place: str
) -> None:
    team = Team(hub, agent, "search")
    error = directory_task(hub, team.names["search"], steps).json["error"]
    assert (error["code"], error["data"]["errors"][0]["path"]) == (-32602, place)
    assert agent.requests == []
