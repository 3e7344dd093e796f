"""How each protocol says it: one folder each, pure, around the canonical model. This is the list of them."""

from collections.abc import Mapping
from typing import Final

from dragoman.dialects import a2a_v10, platform
from dragoman.dialects.dialect import Dialect

# In the order in which a card's shape is tried: the most telling key first.
DIALECTS: Final[Mapping[str, Dialect]] = {dialect.slug: dialect for dialect in (a2a_v10.DIALECT, platform.DIALECT)}
