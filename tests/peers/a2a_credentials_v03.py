"""The published a2a-sdk 0.3.26 with its own credentials: the same as `a2a_credentials_v10.py`, in its words."""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, A2AClientError, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.types import AgentCard, Message, Part, Role, TextPart

TIMEOUT_S = 40.0


async def token(http: httpx.AsyncClient, card: AgentCard, scheme: str, key: str) -> str:
    """An access token, from where the card says."""
    flow = card.security_schemes[scheme].root.flows.client_credentials
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


print(json.dumps(asyncio.run(told(*sys.argv[1:]))))
