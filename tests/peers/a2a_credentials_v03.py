"""The published a2a-sdk 0.3.26 with its own credentials: the same as `a2a_credentials_v10.py`, in its words."""

import httpx
from a2a.client import A2ACardResolver, A2AClientError, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.types import Message, Part, Role, TextPart
from credentials import tell, token


async def told(http: httpx.AsyncClient, url: str, scheme: str, key: str) -> dict[str, str]:
    """What came of one message."""
    card = await A2ACardResolver(http, url).get_agent_card()
    credential = key
    if scheme == "oauth2":
        credential = await token(http, card.security_schemes[scheme].root.flows.client_credentials.token_url, key)
    store = InMemoryContextCredentialStore()
    await store.set_credentials("session", scheme, credential)
    client = ClientFactory(ClientConfig(streaming=False, httpx_client=http)).create(
        card, interceptors=[AuthInterceptor(store)]
    )
    message = Message(message_id=f"m-{scheme}", role=Role.user, parts=[Part(root=TextPart(text="hello"))])
    try:
        async for event in client.send_message(message, context=ClientCallContext(state={"sessionId": "session"})):
            task = event if isinstance(event, Message) else event[0]
            return {"state": task.status.state.value}
    except A2AClientError as error:
        return {"raised": f"{type(error).__name__}: {error}"}
    return {"raised": "nothing came"}


tell(told)
