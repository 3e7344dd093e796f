"""The published client a2a-sdk 0.3.26 with its defaults: by the agent's card, streaming where the card says so."""

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory, create_text_message_object
from a2a.types import Message, Task
from a2a.utils import get_message_text, get_text_parts
from asking import TIMEOUT_S, ask


async def send(url: str, text: str) -> str:
    """The text of the artifacts of the task that the client put together, or of its message."""
    said: Message | Task | None = None
    async with httpx.AsyncClient(timeout=TIMEOUT_S) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        async for event in client.send_message(create_text_message_object(content=text)):
            said = event if isinstance(event, Message) else event[0]
    if isinstance(said, Message):
        return get_message_text(said)
    if said is None:
        return ""
    found = "".join(part for each in said.artifacts or () for part in get_text_parts(each.parts))
    return found or (get_message_text(said.status.message) if said.status.message else "")


if __name__ == "__main__":
    ask(send)
