"""google-adk's `RemoteA2aAgent`, run like any agent of ADK: it is given the address of a card."""

from asking import ask
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

CARD = ".well-known/agent-card.json"


async def send(url: str, text: str) -> str:
    """The answer put together as ADK's documentation shows: what came in pieces, and the event that ends it."""
    remote = RemoteA2aAgent(name="remote", agent_card=f"{url.rstrip('/')}/{CARD}")
    runner = InMemoryRunner(agent=remote, app_name="interop")
    session = await runner.session_service.create_session(app_name="interop", user_id="somebody")
    asked = types.Content(role="user", parts=[types.Part(text=text)])
    pieces, failures = [], []
    async for event in runner.run_async(user_id="somebody", session_id=session.id, new_message=asked):
        if event.error_message:
            failures.append(event.error_message)
        if event.partial or event.is_final_response():
            parts = event.content.parts if event.content else None
            pieces += [part.text for part in parts or () if part.text and not part.thought]
    await runner.close()
    if failures and not pieces:
        raise RuntimeError("; ".join(failures))
    return "".join(pieces)


if __name__ == "__main__":
    ask(send)
