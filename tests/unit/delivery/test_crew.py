"""The queue of one agent's calls: what waits no more takes no room in it."""

from dragoman.delivery.crew import SPARE, Crew
from dragoman.delivery.line import Line
from dragoman.delivery.session import Session
from dragoman.dialects.dialect import Outgoing, Verb
from dragoman.dialects.platform.connected import ENDPOINT
from dragoman.dialects.platform.connected_events import ConnectedListener
from dragoman.model.call import AdmittedCall, Caller, OpenedCall
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent, new_task

CLOCK = ManualClock()


def line(order: int) -> Line:
    task = new_task(CLOCK)
    call = AdmittedCall(
        caller=Caller(tenant="acme", id="alice"),
        operation=task.asked,
        agent=new_agent(CLOCK, "weather"),
        endpoint=ENDPOINT,
        skill=None,
        message=task.asked.message,
        task=task,
        timeout_s=1.0,
        deadline=1.0,
    )
    outgoing = Outgoing(verb=Verb.STREAM, task=task, asked=task.asked, endpoint=ENDPOINT, at=CLOCK.now())
    return Line(OpenedCall(call=call, task=task), ConnectedListener(outgoing), order, CLOCK)


def test_calls_that_gave_up_waiting_leave_the_queue() -> None:
    crew = Crew()
    for order in range(1000):
        gone = line(order)
        crew.waiting[gone.id] = gone
        crew.offer(gone)
        del crew.waiting[gone.id]
    assert crew.queued <= SPARE + 2
    waits = [line(order) for order in (1001, 1000)]
    for each in waits:
        crew.waiting[each.id] = each
        crew.offer(each)
    session = Session(id="s", tenant="acme", agent_id="weather", opened_by="alice", capacity=5, unread=print)
    crew.sessions[session.id] = session
    assert [found.id for found, _ in crew.match(draining=False)] == [waits[1].id, waits[0].id]
    assert crew.queued == 0
