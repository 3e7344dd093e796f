"""The official A2A SDK, unchanged, calls an agent that speaks another dialect: pip install a2a-sdk httpx"""

import asyncio
import os

import httpx
from a2a.client import ClientConfig, create_client
from a2a.types import Message, Part, Role, SendMessageRequest


async def main() -> None:
    hub = os.environ.get("DRAGOMAN_URL", "http://127.0.0.1:8700")
    async with httpx.AsyncClient() as http:
        config = ClientConfig(httpx_client=http, streaming=False)
        client = await create_client(f"{hub}/agents/agt_archive/", client_config=config)
        asked = Message(message_id="1", role=Role.ROLE_USER, parts=[Part(text="tides")])
        async for answer in client.send_message(SendMessageRequest(message=asked)):
            print(answer.task.artifacts[0].parts[0])


asyncio.run(main())
