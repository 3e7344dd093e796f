"""Official A2A 1.0, both ways, over JSON-RPC and over HTTP, with streams and push notifications; not yet over gRPC."""

from typing import Final

from dragoman.dialects.a2a_v10.errors import RPC
from dragoman.dialects.a2a_v10.inbound import ROUTES, read, read_framed
from dragoman.dialects.a2a_v10.outbound import ask, hear, listen
from dragoman.dialects.a2a_v10.probe import answers_probe, probe
from dragoman.dialects.a2a_v10.push import notify
from dragoman.dialects.a2a_v10.requests import METHODS
from dragoman.dialects.a2a_v10.version import speaks_v10
from dragoman.dialects.dialect import Dialect, Loss
from dragoman.dialects.official_card import (
    CARD_LOSSES,
    V10,
    features_of,
    owns_v10_card,
    read_v10_card,
    v10_signed_forms,
    write_merged_card,
)
from dragoman.model.agent import Binding

DIALECT: Final = Dialect(
    name="a2a_v10",
    slug=V10,
    task_prefix="task-",
    features=features_of(V10, streaming=True),
    losses=(
        *(
            Loss(facet=facet, becomes=f"metadata.dragoman.{facet} of the message", hinted=True)
            for facet in ("skill", "priority", "parent", "title")
        ),
        Loss(facet="role:system", becomes="ROLE_USER, with metadata.dragoman.role", hinted=True),
        Loss(facet="role:tool", becomes="ROLE_USER, with metadata.dragoman.role", hinted=True),
        Loss(facet="artifact:kind", becomes="metadata.dragoman.kind of the artifact", hinted=True),
        Loss(facet="progress", becomes="metadata.dragoman.progress of the task", hinted=True),
        Loss(facet="usage", becomes="metadata.dragoman.usage of the task", hinted=True),
        Loss(facet="description", becomes="nothing"),
        Loss(facet="failure:code", becomes="a failure of the agent, with its words"),
        *CARD_LOSSES,
    ),
    routes=ROUTES,
    owns_request=speaks_v10,
    methods=frozenset(METHODS),
    bindings=frozenset({Binding.JSONRPC, Binding.HTTP}),
    errors=RPC,
    read=read,
    read_framed=read_framed,
    ask=ask,
    hear=hear,
    listen=listen,
    notify=notify,
    owns_card=owns_v10_card,
    read_card=read_v10_card,
    write_card=write_merged_card,
    signed_forms=v10_signed_forms,
    card_paths=("/.well-known/agent-card.json", "/.well-known/agent.json"),
    probe=probe,
    answers_probe=answers_probe,
)
