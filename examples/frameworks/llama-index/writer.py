"""A workflow of LlamaIndex, with its own events and a question, as an agent that everybody can call."""

from llama_index.core.workflow import Context, StartEvent, StopEvent, Workflow, step
from workflows.events import HumanResponseEvent, InputRequiredEvent

from dragoman import Agent


class Order(StartEvent):
    topic: str


class Article(StopEvent):
    text: str


class Writer(Workflow):
    @step
    async def ask(self, ctx: Context, order: Order) -> InputRequiredEvent:
        await ctx.store.set("topic", order.topic)
        return InputRequiredEvent(prefix="How many words?")

    @step
    async def write(self, ctx: Context, answer: HumanResponseEvent) -> Article:
        return Article(text=f"{answer.response} words about {await ctx.store.get('topic')}")


Agent.wrap(Writer(), description="Writes articles", skill="write").start()
