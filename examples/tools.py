"""Skills of agents as tools: of an agent of one's own, and for whatever else takes functions."""

import asyncio

from dragoman import A2AClient, Agent, models

# models.chat_completions("http://127.0.0.1:11434/v1", "llama3.1") would be a real one.
model = models.scripted(
    [models.ToolCall(name="agt_archive__web_search", arguments={"query": "tides"}), "Tides rise and fall."]
)


async def main() -> None:
    async with A2AClient() as client:
        tools = await client.tools(skill=["web_search", "summarize"])
        for tool in tools:
            print(tool.name, list(tool.input_schema["properties"]))

        reader = Agent("Reader", "Look things up before you answer.", tools=tools, model=model)
        answer = await reader.run("What of tides?")
        print(answer.steps[0].results[0][:40], "…", answer.content)

        functions = await client.tools("openai", agent="agt_editor")
        shown = functions[0]["function"]  # goes into `tools=` of a chat completion
        print(shown["name"], "takes", shown["parameters"]["required"])
        said = '{"message": "The moon pulls the sea. The sun helps a little."}'  # what a model writes
        print(await functions.call(shown["name"], said))


asyncio.run(main())
