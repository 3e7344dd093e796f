import asyncio

from dragoman import Agent, testing
from dragoman.errors import AgentError

agent = Agent("Hello")


@agent.skill(examples=[{"name": "Ada"}])
def greet(name: str) -> str:
    """Greet somebody by name"""
    return f"Hello, {name}!"


def test_it_greets() -> None:
    answer = asyncio.run(agent.test.call("greet", {"name": "Ada"}))
    assert answer.result == "Hello, Ada!"


def test_it_is_called_through_a_hub(dragoman_hub) -> None:
    dragoman_hub.add(agent)
    assert dragoman_hub.client().sync.call(skill="greet", input={"name": "Ada"}).text == "Hello, Ada!"


def test_a_caller_copes_with_an_agent_that_fails() -> None:
    async def scene() -> str:
        async with testing.hub() as hub, testing.FakeAgent("a2a-1.0", fail=AgentError) as fake:
            client = hub.client()
            await client.register(fake.url, id="agt_fake")
            try:
                await client.call("agt_fake", "answer", {"text": "hello"})
            except AgentError:
                return "failed"
            return "done"

    assert asyncio.run(scene()) == "failed"


def test_every_dialect_understands_it() -> None:
    report = asyncio.run(testing.check(agent))
    assert report.ok, report
