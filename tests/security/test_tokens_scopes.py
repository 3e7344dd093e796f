"""One table of scopes for every operation; an operation without a line in it cannot be reached.

What each path and method of each dialect needs is walked over the wire in `test_reach.py`.
"""

from typing import Any, Final, get_args

import msgspec
import pytest

from dragoman.hub.authorize import ANONYMOUS_MAY, NEEDED, authorize
from dragoman.model import operations
from dragoman.model.call import Caller
from dragoman.model.errors import NotAuthenticated, NotAuthorized
from dragoman.security.scopes import ALL_SCOPES

OPERATIONS: Final[tuple[type[Any], ...]] = get_args(operations.Operation)


class Unlisted(msgspec.Struct, frozen=True):
    """An operation that nobody has thought about."""


def caller(*scopes: str, anonymous: bool = False) -> Caller:
    return Caller(tenant="default", id="c", scopes=frozenset(scopes), anonymous=anonymous)


def blank(operation: type[Any]) -> Any:
    """One of these, without any of its content: whether it may be asked at all depends on its kind."""
    required = [field.name for field in msgspec.structs.fields(operation) if field.required]
    return operation(**dict.fromkeys(required))


@pytest.mark.req("P-28")
def test_the_table_has_every_operation_and_no_other() -> None:
    assert set(NEEDED) == set(OPERATIONS)
    assert set(OPERATIONS) > ANONYMOUS_MAY
    assert {need for need in NEEDED.values() if need is not None} <= set(ALL_SCOPES)


@pytest.mark.req("P-28")
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_each_operation_needs_its_scope_and_no_other_will_do(operation: type[Any]) -> None:
    asked, need = blank(operation), NEEDED[operation]
    if need is None:
        authorize(caller(), asked)
        return
    authorize(caller(need), asked)
    with pytest.raises(NotAuthorized) as refused:
        authorize(caller(*(scope for scope in ALL_SCOPES if scope != need)), asked)
    assert refused.value.details["missing"] == [need]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_strangers_may_ask_what_looks_at_the_agent_first_and_nothing_else(operation: type[Any]) -> None:
    if operation in ANONYMOUS_MAY:
        authorize(caller(anonymous=True), blank(operation))
        return
    with pytest.raises(NotAuthenticated):
        authorize(caller(anonymous=True), blank(operation))


def test_what_has_no_line_is_for_nobody() -> None:
    unlisted: Any = Unlisted()
    with pytest.raises(NotAuthorized):
        authorize(caller(*ALL_SCOPES), unlisted)
    with pytest.raises(NotAuthenticated):
        authorize(caller(anonymous=True), unlisted)
