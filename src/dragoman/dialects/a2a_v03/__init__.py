"""Official A2A 0.3 as its software speaks it, over JSON-RPC and over HTTP+JSON."""

from typing import Final

from dragoman.dialects.a2a_v03.answers import notify
from dragoman.dialects.a2a_v03.errors import ERRORS
from dragoman.dialects.a2a_v03.framing import ask, hear, listen, read
from dragoman.dialects.a2a_v03.inbound import CARD, METHODS, read_framed
from dragoman.dialects.a2a_v03.outbound import answers_probe, probe
from dragoman.dialects.a2a_v03.rest_in import ROUTES
from dragoman.dialects.a2a_v03.rest_out import probe_rest
from dragoman.dialects.dialect import Dialect, Level, Loss, Route
from dragoman.dialects.official_card import (
    CARD_LOSSES,
    V03,
    features_of,
    owns_v03_card,
    read_v03_card,
    v03_signed_forms,
    write_v03_card,
)
from dragoman.model.agent import Binding
from dragoman.model.fit import Feature

__all__ = ["DIALECT", "probe_rest"]

CARD_PATHS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")


DIALECT: Final = Dialect(
    name="a2a_v03",
    slug=V03,
    task_prefix="task-",
    features=features_of(V03, streaming=True),
    losses=(
        *(
            Loss(facet=facet, becomes=f"metadata.dragoman.{facet} of the message", hinted=True)
            for facet in ("skill", "priority", "parent", "title")
        ),
        Loss(facet="role:system", becomes="user, with metadata.dragoman.role", hinted=True),
        Loss(facet="role:tool", becomes="user, with metadata.dragoman.role", hinted=True),
        Loss(facet="artifact:kind", becomes="metadata.dragoman.kind of the artifact", hinted=True),
        Loss(facet="progress", becomes="metadata.dragoman.progress of the task", hinted=True),
        Loss(facet="usage", becomes="metadata.dragoman.usage of the task", hinted=True),
        Loss(facet="message:references", becomes="over HTTP metadata.dragoman.referenceTaskIds", hinted=True),
        Loss(facet="part:blob", becomes="to an agent over HTTP the address of a file that the hub offers"),
        Loss(facet="description", becomes="nothing"),
        Loss(facet="failure:code", becomes="a failure of the agent, with its words"),
        *CARD_LOSSES,
    ),
    routes=(
        *(Route(method="GET", path=path, name=CARD, level=Level.MOUNT) for path in CARD_PATHS),
        *ROUTES,
    ),
    methods=METHODS,
    bindings=frozenset({Binding.JSONRPC, Binding.HTTP}),
    # Its SDKs disagree about how bytes are encoded there, and nothing tells them apart; all of them read links.
    lacks={Binding.HTTP: frozenset({Feature.INLINE})},
    errors=ERRORS,
    read=read,
    read_framed=read_framed,
    ask=ask,
    hear=hear,
    listen=listen,
    notify=notify,
    owns_card=owns_v03_card,
    read_card=read_v03_card,
    write_card=write_v03_card,
    signed_forms=v03_signed_forms,
    card_paths=CARD_PATHS,
    probe=probe,
    answers_probe=answers_probe,
)
