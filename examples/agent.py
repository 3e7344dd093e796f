"""Everything an agent has: typed input, progress, pieces, files, questions, nested calls, what it used."""

from dataclasses import dataclass
from typing import Annotated

from dragoman import Agent, Context, File, Message
from dragoman.errors import AgentError

agent = Agent("Librarian", description="Finds and keeps books", tags=("books",), concurrency=4)


@dataclass
class Book:
    title: str
    year: int


@agent.skill(tags=("search",), examples=("tides",), idempotent=True, timeout_s=30)
async def find(topic: Annotated[str, "What the book is about"], limit: int = 3) -> list[Book]:
    """Find books about a topic"""
    return [Book(f"{topic.title()}, volume {number}", 1900 + number) for number in range(1, limit + 1)]


@agent.skill
async def report(topic: str, ctx: Context) -> str:
    """Write a report, with what others know"""
    words = await ctx.ask("How many words?", int)
    ctx.log.info("asked", words=words)
    found = await ctx.call(skill="web_search", input={"query": topic, "max_results": 2})
    for number, hit in enumerate(found["results"], 1):
        await ctx.progress(number / len(found["results"]), hit["title"])
    await ctx.artifact(File(bytes=b"%PDF-1.7", name="report.pdf", mime_type="application/pdf"), name="report")
    ctx.usage(input_tokens=120, output_tokens=words)
    return f"{words} words about {topic}"


@agent.skill
def lend(title: str) -> str:
    """Lend a book"""
    if title == "the only copy":
        raise AgentError("Somebody else has it.", retryable=True)
    return f"{title} is yours for a week"


@agent.on_message
async def talk(message: Message, ctx: Context) -> str:
    """Say something to the librarian"""
    return f"You said {message.text!r}; we spoke {len(ctx.history)} times before."


if __name__ == "__main__":
    agent.start()
