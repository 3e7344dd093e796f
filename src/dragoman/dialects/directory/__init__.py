"""The directory's dialect: agents register, are found by capability, and are sent tasks; JSON-RPC, or bare bodies."""

from typing import Final

from dragoman.dialects.dialect import Dialect, Level, Loss, Route
from dragoman.dialects.directory.answers import ERRORS
from dragoman.dialects.directory.card import FEATURES, SLUG, owns_card, read_card, write_card
from dragoman.dialects.directory.inbound import TASK_PREFIX, read
from dragoman.dialects.directory.listen import DirectoryListener
from dragoman.dialects.directory.outbound import ask, hear
from dragoman.dialects.directory.probe import answers_probe, probe

_NO_WORD: Final = "left out"

DIALECT: Final = Dialect(
    name="directory",
    slug=SLUG,
    task_prefix=TASK_PREFIX,
    features=FEATURES,
    losses=(
        Loss(facet="state:submitted", becomes="error -32002: nothing is answered before the end"),
        Loss(facet="state:working", becomes="error -32002: nothing is answered before the end"),
        Loss(facet="state:input-required", becomes="error -32001, reason input_required, with the question"),
        Loss(facet="state:auth-required", becomes="error -32001, reason auth_required, with the question"),
        Loss(facet="part:text", becomes='the object {"text": …}'),
        Loss(facet="part:data", becomes='the object {"parts": […]}, where it is none itself'),
        Loss(facet="parts:none", becomes="an empty object"),
        Loss(facet="parts:several", becomes='the object {"parts": […]}'),
        Loss(facet="part:filename", becomes="kept with files alone"),
        Loss(facet="part:media_type", becomes="kept with files alone"),
        Loss(facet="part:metadata", becomes="kept with files alone"),
        Loss(facet="artifacts:several", becomes="one output"),
        Loss(facet="artifacts:unfinished", becomes="left out: only a completed task has an output"),
        Loss(facet="messages", becomes="left out"),
        Loss(facet="status:message", becomes="left out, save as the reason of a failure"),
        Loss(facet="failure:code", becomes="error -32001, reason and words"),
        *(Loss(facet=f"artifact:{facet}", becomes=_NO_WORD) for facet in ("id", "name", "description", "kind")),
        *(Loss(facet=f"artifact:{facet}", becomes=_NO_WORD) for facet in ("metadata", "extensions")),
        *(Loss(facet=f"role:{role}", becomes="the sender") for role in ("system", "tool", "agent")),
        *(Loss(facet=f"message:{facet}", becomes=_NO_WORD) for facet in ("id", "metadata", "references", "extensions")),
        *(Loss(facet=facet, becomes=_NO_WORD) for facet in ("task:metadata", "context", "progress", "usage")),
        *(Loss(facet=facet, becomes=_NO_WORD) for facet in ("priority", "parent", "title", "description")),
        *(Loss(facet=facet, becomes=_NO_WORD) for facet in ("accepts", "extensions")),
        *(Loss(facet=f"card:{field}", becomes=_NO_WORD) for field in ("description", "version", "limits", "labels")),
        *(Loss(facet=f"card:{field}", becomes=_NO_WORD) for field in ("scopes_required", "memory", "long_running")),
        *(
            Loss(facet=f"card:{field}", becomes=_NO_WORD)
            for field in ("signed", "extended", "default_skill", "pricing")
        ),
        *(Loss(facet=f"card:{field}", becomes=_NO_WORD) for field in ("tags", "input_modes", "output_modes", "keys")),
        *(Loss(facet=f"card:{field}", becomes=_NO_WORD) for field in ("extensions", "provider", "links", "aliases")),
        Loss(facet="card:metadata", becomes=_NO_WORD),
        Loss(facet="skill:name", becomes="its id"),
        *(Loss(facet=f"skill:{field}", becomes=_NO_WORD) for field in ("description", "input_schema", "output_schema")),
        *(Loss(facet=f"skill:{field}", becomes=_NO_WORD) for field in ("input_modes", "output_modes", "tags")),
        *(Loss(facet=f"skill:{field}", becomes=_NO_WORD) for field in ("examples", "scopes", "idempotent", "signed")),
        Loss(facet="skill:metadata", becomes=_NO_WORD),
    ),
    routes=(
        Route(method="POST", path="/a2a/register", name="register", body="admin"),
        Route(method="POST", path="/a2a/discover", name="discover", body="admin"),
        Route(method="POST", path="/a2a/task", name="task"),
        Route(method="GET", path="/a2a/agents", name="agents", level=Level.HUB),
        Route(method="GET", path="/a2a/agents/{agent}", name="agent", level=Level.HUB),
    ),
    methods_begin="a2a/",
    rpc_paths=("/a2a",),
    batches=True,
    errors=ERRORS,
    read=read,
    ask=ask,
    hear=hear,
    listen=DirectoryListener,
    owns_card=owns_card,
    read_card=read_card,
    write_card=write_card,
    probe=probe,
    answers_probe=answers_probe,
)
