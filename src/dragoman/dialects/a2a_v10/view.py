"""What a request of A2A 1.0 comes to: an operation, and how much of its answer the caller wants to see."""

from hashlib import sha256
from typing import Final

import msgspec

from dragoman.dialects.protojson import bad
from dragoman.model.http import HttpRequest
from dragoman.model.operations import Operation

_TAG_LENGTH: Final = 12


class View(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an answer is shown."""

    sent: bool = False  # the answer to a send: wrapped, so that it says what it is
    history: int | None = None
    artifacts: bool = True
    page_size: int = 0
    page_tag: str = ""  # what the tokens of this list begin with: they are good for no other
    page_start: int = 0  # of a list that comes whole and is parted here
    task_id: str = ""  # whose configs are shown
    extended: bool = False


PLAIN: Final = View()


class Asked(msgspec.Struct, frozen=True):
    """An operation, and the view its answer is shown in."""

    operation: Operation
    view: View = PLAIN


def agent_of(request: HttpRequest, tenant: str | None) -> str | None:
    """The agent the URL names, else the tenant: at the hub's root that is the agent's id."""
    return request.params.get("agent") or tenant or None


def page_token(cursor: str | None, view: View) -> str:
    """The token of the next page; empty on the last."""
    return "" if cursor is None else f"{view.page_tag}.{cursor}"


def page_cursor(token: str | None, tag: str) -> str | None:
    """Where the page of a token begins. Raises BadParams for one of another list."""
    if not token:
        return None
    began, _, cursor = token.partition(".")
    if began != tag or not cursor:
        raise bad("pageToken", "not a token of this list: begin again without one")
    return cursor


def page_tag(*filters: str | None) -> str:
    """What the tokens of a list begin with, by what it is a list of."""
    return sha256(msgspec.json.encode(filters)).hexdigest()[:_TAG_LENGTH]
