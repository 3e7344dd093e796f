"""Dotted: JSON-RPC with names like `message.send`, and a card without a file name's ending."""

from typing import Final

from dragoman.dialects.dialect import Dialect, Level, Loss, Route
from dragoman.dialects.dotted.answers import notify
from dragoman.dialects.dotted.card import FEATURES, SLUG, owns_card, read_card, write_card
from dragoman.dialects.dotted.inbound import CARD, ERRORS, METHODS, read
from dragoman.dialects.dotted.outbound import answers_probe, ask, hear, listen, probe
from dragoman.model.fit import Feature

CARD_PATHS: Final = ("/.well-known/agent-card", "/agent-card")

DIALECT: Final = Dialect(
    name="dotted",
    slug=SLUG,
    task_prefix="task-",
    features=FEATURES | {Feature.STREAM},
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
        Loss(facet="description", becomes="nothing"),
        Loss(facet="extensions", becomes="nothing"),
        Loss(facet="status:message", becomes="its text; words that are more than text are one more turn"),
        Loss(facet="failure:code", becomes="a failure of the agent, with its words"),
        Loss(facet="card:id", becomes="one made from the name"),
        Loss(facet="card:scopes_required", becomes="the scopes of the hub's own schemes"),
        Loss(facet="card:provider", becomes="a name: the agent's own, where none is named"),
        Loss(facet="card:long_running", becomes="true: the hub keeps every task"),
        Loss(facet="card:metadata", becomes="the version of the protocol, where there are none"),
        *(Loss(facet=f"card:{field}", becomes="nothing") for field in ("limits", "memory", "signed", "extended")),
        *(Loss(facet=f"card:{field}", becomes="nothing") for field in ("default_skill", "pricing", "labels", "tags")),
        *(Loss(facet=f"card:{field}", becomes="nothing") for field in ("input_modes", "output_modes", "extensions")),
        *(Loss(facet=f"card:{field}", becomes="nothing") for field in ("links", "keys", "aliases")),
        Loss(facet="skill:input_modes", becomes="the words text, file, data; text, where none are named"),
        Loss(facet="skill:output_modes", becomes="the words text, file, data; text, where none are named"),
        *(Loss(facet=f"skill:{field}", becomes="nothing") for field in ("input_schema", "output_schema", "metadata")),
        *(Loss(facet=f"skill:{field}", becomes="nothing") for field in ("scopes", "idempotent", "signed")),
    ),
    routes=tuple(Route(method="GET", path=path, name=CARD, level=Level.BASE) for path in CARD_PATHS),
    methods=METHODS,
    batches=True,
    errors=ERRORS,
    read=read,
    ask=ask,
    hear=hear,
    listen=listen,
    notify=notify,
    owns_card=owns_card,
    read_card=read_card,
    write_card=write_card,
    card_paths=CARD_PATHS,
    probe=probe,
    answers_probe=answers_probe,
)
