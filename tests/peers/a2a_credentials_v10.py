"""The published a2a-sdk 1.3.0 with its own credentials: what the card asks for is what it shows.

The SDK's `AuthInterceptor` reads the card and puts the credential where the named scheme says. How the program is
called stands in `credentials.py`.
"""

import httpx
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest, TaskState
from a2a.utils.errors import A2AError
from credentials import tell, token


async def told(http: httpx.AsyncClient, url: str, scheme: str, key: str) -> dict[str, str]:
    """What came of one message."""
    card = await A2ACardResolver(http, url).get_agent_card()
    credential = key
    if scheme == "oauth2":
        flows = card.security_schemes[scheme].oauth2_security_scheme.flows
        credential = await token(http, flows.client_credentials.token_url, key)
    store = InMemoryContextCredentialStore()
    await store.set_credentials("session", scheme, credential)
    client = ClientFactory(ClientConfig(streaming=False, httpx_client=http)).create(card, [AuthInterceptor(store)])
    message = Message(message_id=f"m-{scheme}", role=Role.ROLE_USER, parts=[Part(text="hello")])
    context = ClientCallContext(state={"sessionId": "session"})
    try:
        async for event in client.send_message(SendMessageRequest(message=message), context=context):
            return {"state": TaskState.Name(event.task.status.state)}
    except A2AError as error:
        return {"raised": f"{type(error).__name__}: {error}"}
    return {"raised": "nothing came"}


tell(told)
