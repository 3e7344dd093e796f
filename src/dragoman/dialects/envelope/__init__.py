"""The envelope dialect: whole messages with sender, receiver and type, posted to one path and acknowledged at once.

A task is assigned, its agent reports how far it is and what came of it; whoever gave it is told in the same words, at
its endpoint or in its mailbox. It has no streams, no question how a task stands, and one object in place of parts.
"""

from functools import partial
from typing import Final

from dragoman.dialects.dialect import Dialect, Level, Loss, Route
from dragoman.dialects.envelope.card import FEATURES, owns_card, read_card, write_card
from dragoman.dialects.envelope.dialogue import DIALOGUE
from dragoman.dialects.envelope.errors import ERRORS
from dragoman.dialects.envelope.inbound import CARD, MAILBOX, MESSAGES, TASK_PREFIX, read
from dragoman.dialects.envelope.notices import notify
from dragoman.dialects.envelope.outbound import answers_probe, ask, hear, probe
from dragoman.dialects.envelope.wire import PATH, SLUG

LOSSES: Final = (
    Loss(facet="state:rejected", becomes="failed, reason rejected"),
    Loss(facet="part:text", becomes="the object {text: …}"),
    Loss(facet="part:data", becomes="one object that lists it, where it is none itself"),
    Loss(facet="parts:none", becomes="an empty object"),
    Loss(facet="part:filename", becomes="nothing, save a file's own"),
    Loss(facet="part:media_type", becomes="nothing, save a file's own"),
    Loss(facet="part:metadata", becomes="nothing, save in a list of parts"),
    Loss(facet="parts:several", becomes="one object that lists them"),
    Loss(facet="artifacts:several", becomes="one result object"),
    Loss(facet="artifacts:unfinished", becomes="nothing: only a completed task has a result"),
    Loss(facet="artifact:id", becomes="result"),
    Loss(facet="artifact:name", becomes="nothing"),
    Loss(facet="artifact:description", becomes="nothing"),
    Loss(facet="artifact:kind", becomes="nothing"),
    Loss(facet="artifact:metadata", becomes="nothing"),
    Loss(facet="artifact:extensions", becomes="nothing"),
    Loss(facet="role:agent", becomes="user"),
    Loss(facet="role:system", becomes="user"),
    Loss(facet="role:tool", becomes="user"),
    Loss(facet="message:id", becomes="a UUID made from it"),
    Loss(facet="message:metadata", becomes="the task's metadata"),
    Loss(facet="message:references", becomes="nothing"),
    Loss(facet="message:extensions", becomes="nothing"),
    Loss(facet="context", becomes="metadata.dragoman.context", hinted=True),
    Loss(facet="messages", becomes="nothing beside the result"),
    Loss(facet="status:message", becomes="its text, and nothing once the task is over"),
    Loss(facet="failure:code", becomes="INTERNAL_ERROR, where this dialect has no code for it"),
    Loss(facet="task:metadata", becomes="the same, with reply_to beside it", hinted=True),
    Loss(facet="parent", becomes="metadata.dragoman.parent of the task", hinted=True),
    Loss(facet="accepts", becomes="nothing"),
    Loss(facet="extensions", becomes="nothing"),
    Loss(facet="card:id", becomes="the agent's UUID"),
    Loss(facet="card:aliases", becomes="the agent's UUID"),
    Loss(facet="card:version", becomes="three numbers, those that it has"),
    Loss(
        facet="card:labels", becomes="the capabilities of the schema's list, custom for all others; made of the skills"
    ),
    Loss(facet="card:metadata", becomes="the same, with the names of custom capabilities"),
    Loss(facet="card:provider", becomes="its name, as the owner"),
    Loss(facet="card:long_running", becomes="true: every task may be"),
    *(Loss(facet=f"card:{field}", becomes="nothing") for field in ("scopes_required", "memory", "extended")),
    *(Loss(facet=f"card:{field}", becomes="nothing") for field in ("default_skill", "pricing", "links")),
    *(Loss(facet=f"card:{field}", becomes="nothing") for field in ("extensions", "input_modes", "output_modes")),
    Loss(facet="skill:name", becomes="its id"),
    *(Loss(facet=f"skill:{field}", becomes="nothing") for field in ("description", "input_schema", "output_schema")),
    *(Loss(facet=f"skill:{field}", becomes="nothing") for field in ("input_modes", "output_modes", "tags", "examples")),
    *(Loss(facet=f"skill:{field}", becomes="nothing") for field in ("scopes", "idempotent", "signed", "metadata")),
)


def make_dialect(*, lenient_ids: bool) -> Dialect:
    """The dialect; with `lenient_ids` a message's id may be any short text, as in the document's own examples."""
    return Dialect(
        name="envelope",
        slug=SLUG,
        task_prefix=TASK_PREFIX,
        features=FEATURES,
        repeats_after_s=(1.0, 2.0, 4.0),
        losses=LOSSES,
        routes=(
            Route(method="POST", path=PATH, name=MESSAGES, level=Level.BASE),
            # Published manuals lead clients to an address that has the first segment already.
            Route(method="POST", path="/a2a" + PATH, name=MESSAGES, level=Level.BASE),
            Route(method="GET", path=PATH, name=MAILBOX),
            Route(method="GET", path="/a2a" + PATH, name=MAILBOX),
            Route(method="GET", path="/agent-card.json", name=CARD, level=Level.BASE),
            Route(method="GET", path="/a2a/agent-card", name=CARD, level=Level.BASE),
        ),
        dialogue=DIALOGUE,
        errors=ERRORS,
        read=partial(read, lenient_ids=lenient_ids),
        ask=ask,
        hear=hear,
        notify=notify,
        owns_card=owns_card,
        read_card=read_card,
        write_card=write_card,
        card_paths=("/agent-card.json", "/a2a/agent-card"),
        probe=probe,
        answers_probe=answers_probe,
    )


DIALECT: Final = make_dialect(lenient_ids=False)
