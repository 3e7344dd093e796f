import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect, wire_error
from dragoman.dialects.platform.answers import refusal
from dragoman.model import errors
from dragoman.model.errors import BY_CODE, DragomanError, error_of
from tests.dialects.goldens import AT

# platform.md, Error Codes; beyond it what the hub needs for itself.
DOCUMENTED = {
    "AGENT_NOT_FOUND": (404, False),
    "AGENT_UNAVAILABLE": (503, True),
    "SKILL_NOT_FOUND": (404, False),
    "RATE_LIMITED": (429, True),
    "AGENT_TIMEOUT": (504, True),
    "CIRCUIT_OPEN": (503, True),
}
CODES = {*DOCUMENTED, "VALIDATION_ERROR", "AUTHORIZATION_ERROR", "AGENT_ERROR", "CALL_NOT_FOUND", "NOT_FOUND"}


EVERY = [
    value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, DragomanError) and not name.startswith("_")
]
SPEAKING = [dialect for dialect in DIALECTS.values() if dialect.read is not None]


@pytest.mark.parametrize("dialect", SPEAKING, ids=lambda dialect: dialect.slug)
@pytest.mark.parametrize("error_class", EVERY, ids=lambda each: each.__name__)
def test_every_error_has_words_of_its_own_in_every_dialect(dialect: Dialect, error_class: type[DragomanError]) -> None:
    root = dialect.errors[DragomanError]
    words = wire_error(dialect.errors, error_class())
    assert (words == root) is (error_class is DragomanError)


@pytest.mark.parametrize("error_class", EVERY, ids=lambda each: each.__name__)
def test_the_platform_uses_its_documented_codes_with_their_status(error_class: type[DragomanError]) -> None:
    code, status = wire_error(DIALECTS["platform"].errors, error_class())
    assert code in CODES
    if code in DOCUMENTED:
        retryable = DOCUMENTED[str(code)][1]
        assert (status, error_class().retryable) in {DOCUMENTED[str(code)], (503, retryable)}
    if status in (400, 401, 403, 404, 409, 413, 415, 421):
        assert error_class().retryable is False


@pytest.mark.parametrize("error_class", EVERY, ids=lambda each: each.__name__)
def test_a_refusal_says_when_to_come_back_and_how_to_prove_oneself(error_class: type[DragomanError]) -> None:
    reply = refusal("a2a_call_1", AT, error_class())
    assert (b"retry-after" in reply.headers) is (reply.status in (429, 503))
    assert (b"www-authenticate" in reply.headers) is (reply.status == 401)


@pytest.mark.parametrize("error_class", EVERY, ids=lambda each: each.__name__)
def test_a_stored_failure_is_told_with_the_words_of_the_error_it_was(error_class: type[DragomanError]) -> None:
    table = DIALECTS["platform"].errors
    was = error_class("It broke", fact=1)
    again = error_of(was.failure())
    assert (again.message, again.details["fact"]) == ("It broke", 1)
    assert again.retryable == was.retryable
    # Two classes may share a code; then they must share their words, save who proved himself and who may not.
    if wire_error(table, was)[1] not in (401, 403):
        assert wire_error(table, again) == wire_error(table, was)


def test_every_code_names_one_class() -> None:
    assert all(BY_CODE[code].code == code for code in BY_CODE)
