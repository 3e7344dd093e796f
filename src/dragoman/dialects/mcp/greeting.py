"""What is said before the first call of a session: who speaks which revision, and that both are ready."""

from dragoman.dialects.dialect import Outgoing
from dragoman.dialects.jsonrpc import RpcError, read_reply
from dragoman.dialects.mcp.outbound import CLIENT, stands_alone
from dragoman.dialects.mcp.protocol import (
    HEADERS,
    NEWEST_SESSION,
    SESSION_HEADER,
    SESSIONS,
    VERSION_HEADER,
    notification_bytes,
    request_bytes,
    text_in,
)
from dragoman.dialects.sse import SseParser, is_stream
from dragoman.model.errors import BadAgentReply
from dragoman.model.http import NO_HEADERS, Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object

GREETING_ID = "dragoman-greeting"


class Greeting:
    """Opens one session: `initialize`, its answer, and the word that it was understood.

    `headers` are those that every further request of the session shows.
    """

    __slots__ = ("_said", "_sent", "_url", "headers", "told")

    def __init__(self, url: str, sent: Headers) -> None:
        self._url = url
        self._sent = sent  # trace and credentials
        self._said = 0
        self.headers: Headers = NO_HEADERS
        self.told: JsonObject = {}  # what the server answered

    def ask(self) -> HttpRequest | None:
        """The next request; None when all is said."""
        if self._said == 0:
            params: JsonObject = {"protocolVersion": NEWEST_SESSION, "capabilities": {}, "clientInfo": CLIENT}
            return self._post(request_bytes("initialize", GREETING_ID, params))
        return self._post(notification_bytes("notifications/initialized")) if self._said == 1 else None

    def hear(self, reply: HttpReply) -> None:
        """Go on by what was answered. Raises BadAgentReply."""
        self._said += 1
        if self._said > 1:
            return  # Whatever is said to a notification, nothing follows from it.
        told = result_in(reply)
        version = text_in(told, "protocolVersion")
        if version not in SESSIONS:
            raise BadAgentReply(
                f"The server speaks revision {version[:32] or '?'} of MCP, which this hub does not.", reason="version"
            )
        self.told = told
        headers = {VERSION_HEADER: version.encode()}
        session = reply.headers.get(SESSION_HEADER)
        if session:
            headers[SESSION_HEADER] = session
        self.headers = headers

    def _post(self, body: bytes) -> HttpRequest:
        return HttpRequest(method="POST", url=self._url, headers={**HEADERS, **self._sent, **self.headers}, body=body)


def greet(outgoing: Outgoing) -> Greeting | None:
    """How a session with the endpoint is opened; None where none is needed."""
    endpoint = outgoing.endpoint
    return None if stands_alone(endpoint.version) else Greeting(endpoint.url or "", outgoing.headers)


def result_in(reply: HttpReply) -> JsonObject:
    """The result that a reply holds, be it JSON or the last of some events. Raises BadAgentReply."""
    result: Json | RpcError = None
    if is_stream(reply.headers):
        for event in SseParser().feed(reply.body):
            if b'"result"' in event.data or b'"error"' in event.data:
                result = read_reply(HttpReply(status=200, body=event.data))
    elif reply.body:
        result = read_reply(reply)
    if isinstance(result, RpcError):
        raise BadAgentReply(result.message, reason="refused", agent_code=result.code, agent_status=reply.status)
    if not is_object(result):
        raise BadAgentReply(
            f"The server answered HTTP {reply.status} with something that is no result.",
            reason="invalid_response",
            agent_status=reply.status,
        )
    return result
