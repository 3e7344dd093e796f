"""A dialect of nobody's, as a third party would write one: a folder, and one line that says it is there.

    POST /eighth   {"do": "send", "to": "agt_x", "say": [parts], …}   →   {"task": …, "state": …, "say": [parts]}

Agents are posted the same at their own address. See `tests/end_to_end/test_eighth.py` for the line.
"""

from typing import Final

from dragoman.dialects.dialect import Dialect, Loss, Route
from dragoman.model.agent import Binding
from tests.dialects.eighth.card import FEATURES, SLUG, owns_card, read_card, write_card
from tests.dialects.eighth.inbound import ERRORS, read
from tests.dialects.eighth.outbound import ask, hear

DIALECT: Final = Dialect(
    name="eighth",
    slug=SLUG,
    task_prefix="eighth-",
    features=FEATURES,
    losses=(Loss(facet="artifacts:several", becomes="the parts of all of them"),),
    bindings=frozenset({Binding.JSONRPC}),
    routes=(Route(method="POST", path="/eighth", name="said"),),
    errors=ERRORS,
    read=read,
    ask=ask,
    hear=hear,
    owns_card=owns_card,
    read_card=read_card,
    write_card=write_card,
)
