"""The exact check: many requests at once, and on each connection the answer to the request that was sent on it."""

from benchmarks.calls import Call, new_prefix, numbered
from benchmarks.http import Connection
from benchmarks.ledger import Answers
from benchmarks.place import Void

CONNECTIONS = 16
TURNS = 25


def check_pairs(call: Call) -> Answers:
    """Ask on 16 connections at once, 25 times; the answers, each to its own request, else Void."""
    names: list[str] = []
    prefix = new_prefix()
    connections = [Connection(call.endpoint) for _ in range(CONNECTIONS)]
    try:
        for turn in range(TURNS):
            ids = [numbered(prefix, turn * CONNECTIONS + place) for place in range(CONNECTIONS)]
            for connection, id_ in zip(connections, ids, strict=True):
                connection.send(call.with_id(id_))
            for connection, id_ in zip(connections, ids, strict=True):
                reply = connection.receive()
                if fault := call.wanted.fault(reply, id_):
                    raise Void(f"A wrong answer of {call.endpoint.url}: {fault}")
                names += call.wanted.named(reply)
    finally:
        for connection in connections:
            connection.__exit__()
    return Answers(CONNECTIONS * TURNS, names)
