"""Official A2A 1.0. So far its outbound half over JSON-RPC: the hub calls such agents."""

from typing import Final

from dragoman.dialects.a2a_v10.card import FEATURES, SLUG, STREAMING, owns_card, read_card
from dragoman.dialects.a2a_v10.outbound import ask, hear
from dragoman.dialects.a2a_v10.probe import answers_probe, probe
from dragoman.dialects.dialect import Dialect

DIALECT: Final = Dialect(
    name="a2a_v10",
    slug=SLUG,
    task_prefix="task-",
    features=FEATURES | STREAMING,
    ask=ask,
    hear=hear,
    owns_card=owns_card,
    read_card=read_card,
    card_paths=("/.well-known/agent-card.json", "/.well-known/agent.json"),
    probe=probe,
    answers_probe=answers_probe,
)
