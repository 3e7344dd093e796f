"""The Agent Platform's dialect: calls with skill and input, answered with result, timing and trace."""

from typing import Final

from dragoman.dialects.dialect import Dialect, Loss, Route
from dragoman.dialects.platform.card import FEATURES, owns_card, read_card, write_card
from dragoman.dialects.platform.errors import ERRORS
from dragoman.dialects.platform.inbound import SLUG, TASK_PREFIX, read
from dragoman.dialects.platform.outbound import ask, hear

DIALECT: Final = Dialect(
    name="platform",
    slug=SLUG,
    task_prefix=TASK_PREFIX,
    features=FEATURES,
    losses=(
        Loss(facet="state:rejected", becomes="failed, reason rejected"),
        Loss(facet="state:input-required", becomes="running, awaiting input"),
        Loss(facet="state:auth-required", becomes="running, awaiting auth"),
    ),
    hub_identity=True,
    routes=(
        Route(method="POST", path="/v1/a2a/call", name="call"),
        Route(method="GET", path="/v1/a2a/call/{call}/status", name="status"),
        Route(method="POST", path="/v1/a2a/registry", name="registry", body="admin"),
        Route(method="GET", path="/v1/a2a/discover", name="discover"),
        Route(method="GET", path="/v1/a2a/agents/{agent}/card", name="card"),
    ),
    errors=ERRORS,
    read=read,
    ask=ask,
    hear=hear,
    owns_card=owns_card,
    read_card=read_card,
    write_card=write_card,
)
