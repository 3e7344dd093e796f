"""What the official card of either version has no member for, and what stands in its place."""

from typing import Final

from dragoman.dialects.dialect import Loss

_NOTHING: Final = "nothing"

CARD_LOSSES: Final = (
    Loss(facet="card:id", becomes="one made from the name"),
    Loss(facet="card:scopes_required", becomes="the scopes of the hub's own schemes"),
    Loss(facet="card:input_modes", becomes="text and JSON, where none are named"),
    Loss(facet="card:output_modes", becomes="text and JSON, where none are named"),
    Loss(facet="card:provider", becomes="its name and an address, the hub's where it has none"),
    Loss(facet="card:links", becomes="documentation and icon alone"),
    *(Loss(facet=f"card:{field}", becomes=_NOTHING) for field in ("limits", "memory", "long_running", "signed")),
    *(Loss(facet=f"card:{field}", becomes=_NOTHING) for field in ("default_skill", "pricing", "labels", "tags")),
    *(Loss(facet=f"card:{field}", becomes=_NOTHING) for field in ("keys", "aliases", "metadata")),
    Loss(facet="skill:tags", becomes="general, where it has none"),
    Loss(facet="skill:examples", becomes="texts: an object is its JSON"),
    *(Loss(facet=f"skill:{field}", becomes=_NOTHING) for field in ("input_schema", "output_schema", "metadata")),
    *(Loss(facet=f"skill:{field}", becomes=_NOTHING) for field in ("scopes", "idempotent", "signed")),
)
