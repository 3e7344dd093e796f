"""The Agent Platform's dialect: calls with skill and input, answered with result, timing and trace."""

from typing import Final

from dragoman.dialects.dialect import Dialect, Level, Loss, Route
from dragoman.dialects.platform.answers import callback_request
from dragoman.dialects.platform.card import FEATURES, owns_card, read_card, write_card
from dragoman.dialects.platform.errors import ERRORS
from dragoman.dialects.platform.inbound import SLUG, TASK_PREFIX, owns_body, read
from dragoman.dialects.platform.outbound import ask, hear
from dragoman.dialects.platform.streams import PlatformListener

_NOTHING: Final = "nothing"

DIALECT: Final = Dialect(
    name="platform",
    slug=SLUG,
    task_prefix=TASK_PREFIX,
    features=FEATURES,
    losses=(
        Loss(facet="state:rejected", becomes="failed, reason rejected"),
        Loss(facet="state:input-required", becomes="running, awaiting input"),
        Loss(facet="state:auth-required", becomes="running, awaiting auth"),
        Loss(facet="part:text", becomes='the object {"text": …}'),
        Loss(facet="part:data", becomes='the object {"parts": […]}, where it is none itself'),
        Loss(facet="parts:none", becomes="an empty object"),
        Loss(facet="parts:several", becomes='the object {"parts": […]}'),
        Loss(facet="part:filename", becomes="kept with files alone"),
        Loss(facet="part:media_type", becomes="kept with files alone"),
        Loss(facet="part:metadata", becomes="kept with files alone"),
        Loss(facet="artifacts:several", becomes="one result"),
        Loss(facet="artifacts:unfinished", becomes="nothing: only a completed call has a result"),
        Loss(facet="artifact:id", becomes="result"),
        *(Loss(facet=f"artifact:{facet}", becomes=_NOTHING) for facet in ("name", "description", "kind")),
        *(Loss(facet=f"artifact:{facet}", becomes=_NOTHING) for facet in ("metadata", "extensions")),
        *(Loss(facet=f"role:{role}", becomes="the caller") for role in ("agent", "system", "tool")),
        *(Loss(facet=f"message:{facet}", becomes=_NOTHING) for facet in ("id", "metadata", "references", "extensions")),
        Loss(facet="messages", becomes=_NOTHING),
        Loss(facet="status:message", becomes="shown to who polls; in an answer only as the reason of a failure"),
        Loss(facet="progress", becomes="shown to who polls; an answer has none"),
        *(Loss(facet=facet, becomes=_NOTHING) for facet in ("title", "description", "accepts", "extensions")),
        Loss(facet="card:scopes_required", becomes="a2a:call, where none are named"),
        *(Loss(facet=f"card:{field}", becomes=_NOTHING) for field in ("extended", "labels", "extensions", "provider")),
        *(Loss(facet=f"card:{field}", becomes=_NOTHING) for field in ("input_modes", "output_modes", "links")),
        *(Loss(facet=f"card:{field}", becomes=_NOTHING) for field in ("aliases", "metadata")),
        Loss(facet="skill:name", becomes="its id"),
        Loss(facet="skill:input_schema", becomes="any object, where it has none"),
        Loss(facet="skill:output_schema", becomes="any object, where it has none"),
        *(Loss(facet=f"skill:{field}", becomes=_NOTHING) for field in ("input_modes", "output_modes", "metadata")),
        Loss(facet="failure:code", becomes="AGENT_ERROR, where it is none of the codes that an agent's failure keeps"),
    ),
    hub_identity=True,
    routes=(
        Route(method="POST", path="/v1/a2a/call", name="call"),
        Route(method="POST", path="/v1/a2a/call/async", name="async"),
        Route(method="POST", path="/v1/a2a/call/stream", name="stream"),
        Route(method="GET", path="/v1/a2a/call/{call}/status", name="status"),
        Route(method="GET", path="/v1/a2a/call/{call}/stream", name="replay"),
        Route(method="POST", path="/v1/a2a/call/{call}/cancel", name="cancel"),
        Route(method="POST", path="/v1/a2a/call/{call}/rating", name="rating"),
        Route(method="POST", path="/v1/a2a/registry", name="registry", body="admin"),
        Route(method="GET", path="/v1/a2a/discover", name="discover"),
        Route(method="GET", path="/v1/a2a/agents/{agent}/card", name="card"),
        Route(method="POST", path="", name="call", level=Level.MOUNT),
    ),
    owns_body=owns_body,
    errors=ERRORS,
    read=read,
    ask=ask,
    hear=hear,
    listen=PlatformListener,
    notify=callback_request,
    owns_card=owns_card,
    read_card=read_card,
    write_card=write_card,
)
