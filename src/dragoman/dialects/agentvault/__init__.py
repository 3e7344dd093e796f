"""AgentVault's A2A profile 0.2: tasks over JSON-RPC and their streams, webhooks, cards, and its registry's API."""

from typing import Final

from dragoman.dialects.agentvault.answers import ERRORS, notify
from dragoman.dialects.agentvault.card import FEATURES, owns_card, read_card, write_card
from dragoman.dialects.agentvault.inbound import CARD, METHODS, read
from dragoman.dialects.agentvault.listen import AgentVaultListener
from dragoman.dialects.agentvault.outbound import answers_probe, ask, hear, probe
from dragoman.dialects.agentvault.wire import SLUG, TASK_PREFIX
from dragoman.dialects.dialect import Dialect, Level, Loss, Route

_CARDS: Final = "/api/v1/agent-cards"

DIALECT: Final = Dialect(
    name="agentvault",
    slug=SLUG,
    task_prefix=TASK_PREFIX,
    features=FEATURES,
    losses=(
        *(
            Loss(facet=facet, becomes=f"metadata.dragoman.{facet} of the message", hinted=True)
            for facet in ("skill", "priority", "parent", "title")
        ),
        Loss(facet="state:rejected", becomes="FAILED, with metadata.dragoman.state", hinted=True),
        Loss(facet="state:auth-required", becomes="INPUT_REQUIRED, with metadata.dragoman.state", hinted=True),
        *(
            Loss(facet=f"artifact:{facet}", becomes=f"metadata.dragoman.{facet} of the artifact", hinted=True)
            for facet in ("name", "description", "extensions")
        ),
        Loss(facet="part:blob", becomes="the address of a file that the hub offers"),
        Loss(facet="part:media_type", becomes="nothing on text; application/json on data counts as none"),
        Loss(facet="part:filename", becomes="nothing on text and data"),
        Loss(facet="part:metadata", becomes="nothing"),
        Loss(facet="message:id", becomes="the message's place in the task"),
        Loss(facet="message:references", becomes="nothing"),
        Loss(facet="message:extensions", becomes="nothing"),
        Loss(facet="artifact:kind", becomes="result, where it had none"),
        Loss(facet="task:metadata", becomes="part of the message's metadata"),
        *(Loss(facet=facet, becomes="nothing") for facet in ("description", "accepts", "extensions")),
        Loss(facet="status:message", becomes="a message, where it is a question, a reason or the answer; else nothing"),
        Loss(facet="failure:code", becomes="a failure of the agent, with its words"),
        Loss(facet="card:id", becomes="the human readable id, with a dot for its slash"),
        Loss(facet="card:aliases", becomes="the human readable id"),
        Loss(facet="card:scopes_required", becomes="the scopes of the hub's own schemes"),
        Loss(facet="card:input_modes", becomes="text, data and files: the hub takes all three"),
        Loss(facet="card:provider", becomes="the owner, where none is named"),
        Loss(facet="card:links", becomes="icon, privacy and terms alone"),
        *(Loss(facet=f"card:{field}", becomes="nothing") for field in ("limits", "long_running", "labels", "metadata")),
        *(
            Loss(facet=f"card:{field}", becomes="nothing")
            for field in ("memory", "signed", "extended", "default_skill")
        ),
        *(
            Loss(facet=f"card:{field}", becomes="nothing")
            for field in ("pricing", "extensions", "keys", "output_modes")
        ),
        *(Loss(facet=f"skill:{field}", becomes="nothing") for field in ("input_modes", "output_modes", "tags")),
        *(Loss(facet=f"skill:{field}", becomes="nothing") for field in ("examples", "metadata")),
        *(Loss(facet=f"skill:{field}", becomes="nothing") for field in ("scopes", "idempotent", "signed")),
        Loss(facet="context", becomes="metadata.dragoman.context of the message", hinted=True),
        Loss(facet="progress", becomes="a number in metadata.dragoman that callers see and agents are not asked for"),
        Loss(facet="usage", becomes="metadata.dragoman.usage of the task", hinted=True),
    ),
    routes=(
        Route(method="GET", path="/agent-card.json", name=CARD, level=Level.MOUNT),
        Route(method="GET", path=f"/{SLUG}/agent-card.json", name=CARD),
        Route(method="GET", path=_CARDS, name="cards"),
        Route(method="POST", path=_CARDS, name="create", body="admin"),
        Route(method="GET", path=f"{_CARDS}/by-hri", name="by-hri"),
        Route(method="GET", path=f"{_CARDS}/id/{{org}}/{{name}}", name="by-name"),
        Route(method="GET", path=f"{_CARDS}/{{uuid}}", name="record"),
        Route(method="PUT", path=f"{_CARDS}/{{uuid}}", name="change", body="admin"),
        Route(method="DELETE", path=f"{_CARDS}/{{uuid}}", name="delete"),
        Route(method="POST", path="/api/v1/utils/validate-card", name="validate", body="admin"),
    ),
    methods=METHODS,
    rpc_paths=("/a2a",),
    errors=ERRORS,
    read=read,
    ask=ask,
    hear=hear,
    listen=AgentVaultListener,
    notify=notify,
    owns_card=owns_card,
    read_card=read_card,
    write_card=write_card,
    card_paths=("/agent-card.json",),
    probe=probe,
    answers_probe=answers_probe,
)
