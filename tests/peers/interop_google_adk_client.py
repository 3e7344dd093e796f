"""google-adk's `RemoteA2aAgent`, run like any agent of ADK: it is given the address of a card."""

from asking import ask
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

CARD = ".well-known/agent-card.json"


async def send(url: str, text: str) -> str:
    """The last answer that is final."""
    remote = RemoteA2aAgent(name="remote", agent_card=f"{url.rstrip('/')}/{CARD}")
    runner = InMemoryRunner(agent=remote, app_name="interop")
    session = await runner.session_service.create_session(app_name="interop", user_id="somebody")
    heard, failures = "", []
    async for event in runner.run_async(
        user_id="somebody", session_id=session.id, new_message=types.Content(role="user", parts=[types.Part(text=text)])
    ):
        if event.error_message:
            failures.append(event.error_message)
        if event.content and event.is_final_response():
            heard = "".join(part.text or "" for part in event.content.parts or () if not part.thought) or heard
    await runner.close()
    if failures and not heard:
        raise RuntimeError("; ".join(failures))
    return heard


if __name__ == "__main__":
    ask(send)
