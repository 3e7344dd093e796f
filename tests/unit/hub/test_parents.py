"""Open calls are found by what their agents pass on, and only as long as they are open."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dragoman.hub.parents import LiveCalls
from dragoman.model.events import Remote
from dragoman.model.task import Task, Trace
from tests.unit.model.test_lifecycle import TASK


def task(number: int, *, agent: str = "a", trace: str = "t", context: str = "c", tenant: str = "default") -> Task:
    own = Trace(trace_id=trace, span_id=f"span-{number}")
    return msgspec.structs.replace(
        TASK, id=f"call-{number}", tenant=tenant, agent_id=agent, context_id=context, trace=own
    )


def below(span: str, trace: str = "t") -> Trace:
    return Trace(trace_id=trace, span_id="mine", parent_span_id=span)


def test_an_open_call_is_found_by_name_span_trace_and_conversation_until_it_ends() -> None:
    live, call = LiveCalls(), task(1)
    live.add(call)
    assert "call-1" in live
    assert live.get("call-1") is call
    assert live.of_span(below("span-1")) is call
    assert live.of_span(below("span-1", "another trace")) is None
    assert live.of_span(Trace(trace_id="t", span_id="mine")) is None
    assert live.at("default", "a", "t") is live.at("default", "a", "c") is call
    for elsewhere in (("other", "a", "t"), ("default", "b", "t"), ("default", "a", "x")):
        assert live.at(*elsewhere) is None
    live.drop("call-1")
    live.drop("call-1")
    assert len(live) == 0
    assert live.of_span(below("span-1")) is None
    assert live.at("default", "a", "t") is None


def test_of_several_at_one_place_the_last_is_taken_and_the_others_stay() -> None:
    live = LiveCalls()
    calls = [task(number) for number in range(3)]
    for call in calls:
        live.add(call)
    assert live.at("default", "a", "c") is calls[2]
    live.drop("call-2")
    assert live.at("default", "a", "c") is calls[1]
    live.drop("call-0")
    live.drop("call-1")
    assert live.at("default", "a", "c") is None


def test_at_one_place_calls_of_several_agents_and_tenants_are_told_apart() -> None:
    live = LiveCalls()
    calls = [task(1), task(2, agent="b"), task(3, tenant="other"), task(4, agent="b", tenant="other")]
    for call in calls:
        live.add(call)
    for call in calls:
        assert live.at(call.tenant, call.agent_id, "t") is live.at(call.tenant, call.agent_id, "c") is call
        assert live.of_span(below(call.trace.span_id)) is call
    live.drop("call-2")
    assert live.at("default", "b", "c") is live.of_span(below("span-2")) is None
    assert live.at("other", "b", "c") is calls[3]


def test_the_name_that_the_target_has_for_a_conversation_finds_the_call_too() -> None:
    live = LiveCalls()
    live.add(msgspec.structs.replace(task(1), remote=Remote(context_id="theirs")))
    assert live.at("default", "a", "theirs") is not None
    live.drop("call-1")
    assert live.at("default", "a", "theirs") is None


def test_a_call_that_goes_to_another_agent_is_found_there() -> None:
    live = LiveCalls()
    live.add(task(1))
    live.add(task(1, agent="b"))
    assert (len(live), live.at("default", "a", "c")) == (1, None)
    assert live.at("default", "b", "c") is not None


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.sampled_from("ab"), st.sampled_from("xy"))))
def test_nothing_is_left_behind(steps: list[tuple[bool, int, str, str]]) -> None:
    live = LiveCalls()
    for adds, number, agent, context in steps:
        if adds:
            live.add(task(number, agent=agent, context=context, trace=context * 2))
        else:
            live.drop(f"call-{number}")
    for number in range(6):
        live.drop(f"call-{number}")
    assert live.sizes() == (0, 0, 0)


def test_beyond_the_bound_calls_are_found_by_their_names_alone() -> None:
    live = LiveCalls(most=2)
    for number in range(4):
        live.add(task(number, context=f"c{number}"))
    assert live.sizes() == (4, 1, 2)
    assert live.of_span(below("span-1")) is not None
    assert live.of_span(below("span-3")) is None
    assert live.at("default", "a", "c3") is None
    for number in range(4):
        live.drop(f"call-{number}")
    assert live.sizes() == (0, 0, 0)
