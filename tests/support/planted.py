"""Hubs with a fault in them, to prove that the tests find it: a table of names and faulty parts.

`python -m tests.support.planted NAME[=N] -- serve …` is `dragoman serve …` with that part in place of the good one;
several are joined by commas. Where the composition root takes a part it is handed in, elsewhere it is patched
(`planting.py`).

Three kinds. Bugs break a promise. Kill points break none: there the hub kills itself. Gauges break none either: they
tell the test something of the hub's inside, or shorten what takes long.
"""

import sys
from collections.abc import Mapping
from typing import Final

from dragoman.cli import main
from tests.support import (
    planted_breakers,
    planted_callbacks,
    planted_calls,
    planted_connected,
    planted_credentials,
    planted_figures,
    planted_kept,
    planted_limits,
    planted_observed,
    planted_overload,
    planted_points,
    planted_security,
    planted_signatures,
    planted_spending,
    planted_streams,
    planted_traces,
    planted_workflows,
)
from tests.support.planting import Plant

BUGS: Final[Mapping[str, Plant]] = {
    each.__name__: each
    for each in (
        planted_calls.ack_before_commit,
        planted_calls.keyed_sent_before_opening,
        planted_calls.idempotency_ignored,
        planted_calls.accepted_before_commit,
        planted_calls.no_lease,
        planted_calls.claimed_twice,
        planted_calls.no_recovery,
        planted_calls.events_read_at_start,
        planted_callbacks.new_id_per_attempt,
        planted_callbacks.redirect_followed,
        planted_callbacks.outbox_in_second_transaction,
        planted_streams.published_before_commit,
        planted_streams.stream_end_swallowed,
        planted_streams.reader_kept,
        planted_streams.reader_unbounded,
        planted_streams.reader_waited_for,
        planted_streams.resumed_one_early,
        planted_streams.resumed_one_late,
        planted_streams.exits_at_once,
        planted_streams.no_keep_alive,
        planted_workflows.workflow_job_finished_early,
        planted_workflows.steps_named_anew,
        planted_workflows.steps_not_stopped,
        planted_workflows.steps_refused_for_good,
        planted_connected.lost_calls_not_offered,
        planted_connected.given_to_two_sessions,
        planted_connected.running_calls_dropped,
        planted_credentials.credential_follows_its_agent,
        planted_figures.cancelled_counts_as_failed,
        planted_figures.failures_not_routed_around,
        planted_figures.health_never_marks,
        planted_kept.backup_without_log,
        planted_limits.meter_taken_later,
        planted_limits.failed_calls_keep_their_permit,
        planted_limits.priority_ignored,
        planted_limits.permit_kept_between_tries,
        planted_signatures.seen_in_memory_only,
        planted_overload.no_shedding,
        planted_observed.call_counted_twice,
        planted_observed.end_noted_by_all,
        planted_observed.label_from_request,
        planted_security.name_judged_only,
        planted_security.resolved_again,
        planted_security.tasks_listed_to_strangers,
        planted_security.followed_without_owner,
        planted_security.shown_to_every_tenant,
        planted_security.nothing_sealed,
        planted_security.depth_unchecked,
        planted_spending.chain_lost,
        planted_spending.budget_forgotten,
        planted_spending.refused_is_charged,
        planted_breakers.breaker_never_opens,
        planted_breakers.retries_without_budget,
        planted_breakers.short_timeouts_count,
        planted_traces.new_trace_at_the_second_hop,
        planted_traces.traces_of_every_tenant,
        planted_traces.one_span_for_all_attempts_to_call_back,
    )
}
KILL_POINTS: Final[Mapping[str, Plant]] = {
    each.__name__: each
    for each in (
        planted_points.opening_held,
        planted_points.before_commit,
        planted_points.after_commit,
        planted_points.before_send,
        planted_points.after_answer,
        planted_points.before_answer,
        planted_points.in_stream,
        planted_points.after_callback,
    )
}
GAUGES: Final[Mapping[str, Plant]] = {
    each.__name__: each
    for each in (
        planted_overload.costly_calls,
        planted_streams.counts_tasks,
        planted_streams.keeps_alive_each_second,
        planted_security.tells_dials,
        planted_breakers.breakers_in_a_hurry,
    )
}


def run(arguments: list[str]) -> int:
    """`NAME[=N],… -- COMMAND …`: the command line of dragoman with these faults in it."""
    if len(arguments) < 2 or arguments[1] != "--":
        raise SystemExit("usage: python -m tests.support.planted NAME[=N],… -- serve …")
    known = {**BUGS, **KILL_POINTS, **GAUGES}
    for each in arguments[0].split(","):
        name, _, passing = each.partition("=")
        known[name](int(passing or 1))
    sys.argv = ["dragoman", *arguments[2:]]
    return main()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
