"""The published client a2a-sdk 1.3.0 with its defaults: by the agent's card, streaming where the card says so."""

import uuid

from a2a.client import ClientFactory
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest, StreamResponse
from asking import ask


async def send(url: str, text: str) -> str:
    """The text of the artifacts, as its events bring it."""
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)])
    client = await ClientFactory().create_from_url(url)
    artifacts: dict[str, str] = {}
    said = ""
    async for event in client.send_message(SendMessageRequest(message=message)):
        said = take(event, artifacts) or said
    return "".join(artifacts.values()) or said


def take(event: StreamResponse, artifacts: dict[str, str]) -> str:
    """Keep what an event tells of artifacts; the text of a message, which counts where there are none."""
    if event.HasField("artifact_update"):
        update = event.artifact_update
        before = artifacts.get(update.artifact.artifact_id, "") if update.append else ""
        artifacts[update.artifact.artifact_id] = before + words(update.artifact.parts)
    if event.HasField("task"):
        artifacts.update({each.artifact_id: words(each.parts) for each in event.task.artifacts})
        return words(event.task.status.message.parts)
    if event.HasField("status_update"):
        return words(event.status_update.status.message.parts)
    return words(event.message.parts)


def words(parts: list[Part]) -> str:
    """The texts of parts."""
    return "".join(part.text for part in parts)


if __name__ == "__main__":
    ask(send)
