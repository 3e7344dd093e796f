"""The official agent card of both versions, 1.0 and 0.3, and the two merged into one: read, written, served.

Reading is as liberal as real cards need it. Writing is strict: every required member, no empty list, only the hub's
own addresses and ways to authenticate; what a card brought that no version knows is kept where its version is shown.
"""

from dragoman.dialects.official_card.losses import CARD_LOSSES
from dragoman.dialects.official_card.reading import (
    V03,
    V10,
    features_of,
    owns_v03_card,
    owns_v10_card,
    read_skills,
    read_v03_card,
    read_v10_card,
)
from dragoman.dialects.official_card.serving import card_reply, place_seen, signed_card
from dragoman.dialects.official_card.signed_form import v03_signed_forms, v10_signed_forms
from dragoman.dialects.official_card.writing import OFFERED, write_merged_card, write_v03_card, write_v10_card

__all__ = [
    "CARD_LOSSES",
    "OFFERED",
    "V03",
    "V10",
    "card_reply",
    "features_of",
    "owns_v03_card",
    "owns_v10_card",
    "place_seen",
    "read_skills",
    "read_v03_card",
    "read_v10_card",
    "signed_card",
    "v03_signed_forms",
    "v10_signed_forms",
    "write_merged_card",
    "write_v03_card",
    "write_v10_card",
]
