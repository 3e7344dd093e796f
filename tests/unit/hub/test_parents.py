"""Open calls are found by what their agents pass on, and only as long as they are open."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dragoman.hub.parents import MOST_FRESH, LiveCalls
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


@given(
    st.lists(
        st.tuples(st.sampled_from(("add", "drop", "look")), st.integers(0, 5), *map(st.sampled_from, ("ab", "xy")))
    )
)
def test_whenever_somebody_looks_every_open_call_is_found_and_nothing_is_left_behind(
    steps: list[tuple[str, int, str, str]],
) -> None:
    live = LiveCalls()
    known: dict[str, Task] = {}  # the last one last
    for what, number, agent, context in steps:
        call = task(number, agent=agent, context=context, trace=context * 2)
        if what == "look":
            there = [each for each in known.values() if (each.agent_id, each.context_id) == (agent, context)]
            assert live.at("default", agent, context) is live.at("default", agent, context * 2)
            assert live.at("default", agent, context) is (there[-1] if there else None)
            assert [*map(live.get, known)] == [*known.values()]
            for each in known.values():
                assert live.of_span(below(each.trace.span_id, each.trace.trace_id)) is each
            continue
        live.drop(call.id) if what == "drop" else live.add(call)
        known.pop(call.id, None)
        if what == "add":
            known[call.id] = call
        assert len(live) == len(known)
    for number in range(6):
        live.drop(f"call-{number}")
    assert live.sizes() == (0, 0, 0)


def test_calls_that_nobody_looked_for_are_found_however_many_there_are() -> None:
    live = LiveCalls()
    calls = [task(number, context=f"c{number}") for number in range(2 * MOST_FRESH + 1)]
    for call in calls:
        live.add(call)
    for call in (calls[0], calls[MOST_FRESH], calls[-1]):
        assert live.at("default", "a", call.context_id) is call
    assert len(live) == len(calls)


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
