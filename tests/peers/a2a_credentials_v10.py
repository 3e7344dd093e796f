"""The published a2a-sdk 1.3.0 with its own credentials: what the card asks for is what it shows.

    python a2a_credentials_v10.py URL SCHEME KEY        one message; prints {"state": …} or {"raised": …}

The SDK's `AuthInterceptor` reads the card and puts the credential where the named scheme says. It fetches no tokens:
for `oauth2` this program gets one, at the token URL of the card, as its users do. Imports nothing of Dragoman.
"""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.types.a2a_pb2 import AgentCard, Message, Part, Role, SendMessageRequest, TaskState
from a2a.utils.errors import A2AError

TIMEOUT_S = 40.0


async def token(http: httpx.AsyncClient, card: AgentCard, scheme: str, key: str) -> str:
    """An access token, from where the card says."""
    flow = card.security_schemes[scheme].oauth2_security_scheme.flows.client_credentials
    form = {"grant_type": "client_credentials", "client_id": key.split("_")[1], "client_secret": key}
    answer = await http.post(flow.token_url, data=form)
    return answer.raise_for_status().json()["access_token"]


async def told(url: str, scheme: str, key: str) -> dict[str, str]:
    """What came of one message."""
    async with httpx.AsyncClient(timeout=TIMEOUT_S) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        credential = await token(http, card, scheme, key) if scheme == "oauth2" else key
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


print(json.dumps(asyncio.run(told(*sys.argv[1:]))))
