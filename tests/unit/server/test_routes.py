"""Paths: one table, variables percent-decoded, every path with and without its final slash."""

from dragoman.server.routes import RouteTable

TABLE = RouteTable(
    [
        ("POST", "/v1/a2a/call", "call"),
        ("GET", "/v1/a2a/call/{call}/status", "status"),
        ("GET", "/v1/agents/{agent}", "agent"),
        ("GET", "/", "root"),
    ]
)


def found(method: str, path: str, raw: bytes | None = None) -> tuple[str, dict[str, str]] | None:
    hit = TABLE.find(method, path, raw or path.encode())
    return None if hit is None else (hit.target, dict(hit.params))


def test_exact_paths_and_those_with_variables_are_found() -> None:
    assert found("POST", "/v1/a2a/call") == ("call", {})
    assert found("GET", "/v1/a2a/call/a2a_call_1/status") == ("status", {"call": "a2a_call_1"})
    assert found("GET", "/") == ("root", {})


def test_a_final_slash_changes_nothing() -> None:
    assert found("POST", "/v1/a2a/call/") == ("call", {})
    assert found("GET", "/v1/agents/x/") == ("agent", {"agent": "x"})


def test_head_asks_for_what_get_would_get() -> None:
    assert found("HEAD", "/v1/agents/x") == found("GET", "/v1/agents/x")
    assert found("HEAD", "/v1/a2a/call") is None


def test_what_is_not_there_is_not_found() -> None:
    assert found("GET", "/v1/a2a/call") is None
    assert found("GET", "/v1/agents/") is None
    assert found("GET", "/v1/agents//x") is None
    assert found("GET", "//v1/agents/x") is None


def test_an_escaped_slash_stays_in_its_segment() -> None:
    assert found("GET", "/v1/agents/org/name", b"/v1/agents/org%2Fname") == ("agent", {"agent": "org/name"})
    assert found("GET", "/v1/agents/../keys", b"/v1/agents/..%2Fkeys") == ("agent", {"agent": "../keys"})


def test_the_methods_of_a_path_can_be_told() -> None:
    assert TABLE.allowed("/v1/a2a/call", b"/v1/a2a/call") == ["POST"]


def test_a_path_may_stand_for_values_that_it_does_not_name() -> None:
    implied = {"/": {"agent": "one"}, "/tasks/{task}": {"agent": "one"}}
    table = RouteTable(
        [("POST", "/", "rpc"), ("GET", "/tasks/{task}", "task"), ("GET", "/agents/{agent}", "base")], implied
    )
    seen = {
        path: dict(hit.params)
        for method, path in (("POST", "/"), ("GET", "/tasks/7"), ("GET", "/agents/other"))
        if (hit := table.find(method, path, path.encode())) is not None
    }
    assert seen == {
        "/": {"agent": "one"},
        "/tasks/7": {"agent": "one", "task": "7"},
        "/agents/other": {"agent": "other"},
    }
