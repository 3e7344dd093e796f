"""Agents written down and read back, and changed copies of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Message, models, tool
from dragoman.model.secret import Secret
from dragoman.sdk.run.models import ModelReply, ModelRequest
from tests.support.run import run

HERE = __name__


@tool(name="count_people")
async def population(city: str) -> int:
    """Inhabitants of a city"""
    return len(city)


def plain(n: int) -> int:
    return n


async def search(query: str, limit: int = 3) -> list[str]:
    """Search the web"""
    return [query] * limit


async def talk(message: Message) -> str:
    """Talks"""
    return message.text


async def echo_model(request: ModelRequest) -> ModelReply:
    return ModelReply(text=request.messages[-1].text)


def everything() -> Agent:
    agent = Agent(
        "Guide",
        "Answer with figures.",
        id="agt_other",
        description="Knows cities",
        version="2.0.0",
        tools=[population, plain],
        model=echo_model,
        max_steps=3,
        hub="http://127.0.0.1:9999",
        concurrency=4,
        rate_limits={"requests_per_minute": 5},
        scopes_required=["a2a:call", "cities"],
        tags=["geo"],
        provider={"name": "Us"},
        card={"pricing": {"model": "free"}},
    )
    find = agent.skill(
        name="find",
        description="Finds",
        tags=["web"],
        examples=[{"query": "x"}],
        idempotent=True,
        timeout_s=9,
        strict=True,
        scopes=["web"],
    )
    find(search)
    agent.skill(plain)
    agent.on_message(talk)
    return agent


@pytest.mark.req("P-65")
def test_an_agent_is_the_same_after_it_was_written_down_and_read_back() -> None:
    agent = everything()
    written = json.loads(json.dumps(agent.to_dict()))
    again = Agent.from_dict(written)
    assert again.to_dict() == written
    assert again.card() == agent.card()
    assert again.tools == agent.tools
    assert again.model is echo_model
    assert again.skills.keys() == agent.skills.keys() >= {"find", "plain", "chat", "handle"}
    assert written["tools"] == [f"{HERE}:population", f"{HERE}:plain"]
    assert written["model"] == {"import": f"{HERE}:echo_model"}
    assert written["skills"][0]["function"] == f"{HERE}:search"
    assert written["skills"][1] == {"function": f"{HERE}:plain"}
    assert run(again.arun("hi")).content == "hi"


@pytest.mark.req("P-65")
def test_what_is_as_ever_is_left_out_and_secrets_always_are() -> None:
    assert Agent("Guide", api_key="planted").to_dict() == {"name": "Guide"}
    with pytest.raises(ValueError, match="api_key"):
        Agent.from_dict({"name": "Guide", "api_key": "planted"})


@pytest.mark.req("P-65")
def test_models_are_written_by_name_or_by_place_without_their_key() -> None:
    place = {"chat_completions": {"url": "http://127.0.0.1:1/v1", "name": "m"}}
    agent = Agent("G", model=models.chat_completions("http://127.0.0.1:1/v1/", "m"))
    assert agent.to_dict()["model"] == place
    assert repr(Agent.from_dict(agent.to_dict()).model) == "chat_completions('http://127.0.0.1:1/v1', 'm')"
    assert Agent.from_dict({"name": "G", "model": "llama3.1:8b"}).model == "llama3.1:8b"
    with pytest.raises(ValueError, match="no part of a definition") as raised:
        Agent("G", model=models.chat_completions("http://127.0.0.1:1/v1", "m", "planted")).to_dict()
    assert "planted" not in str(raised.value)


@pytest.mark.req("P-65")
def test_a_yaml_file_is_read_and_what_is_wrong_in_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(
        f"name: Guide\ninstructions: |\n  Two\n  lines\ntags: [a, b]\nmax_steps: 2\ntools: ['{HERE}:population']\n"
        f"skills:\n  - function: '{HERE}:search'\n    name: find\n"
    )
    agent = Agent.from_yaml(file)
    assert (agent.name, agent.instructions, agent.tags, agent.max_steps) == ("Guide", "Two\nlines\n", ("a", "b"), 2)
    assert agent.tools == (population,)
    assert list(agent.skills) == ["find"]
    assert Agent.from_yaml(str(file)).to_dict() == agent.to_dict()
    for text, said in (("name: [", "not YAML"), ("- a", "no definition"), ("name: G\nmax_step: 3", "max_step")):
        file.write_text(text)
        with pytest.raises(ValueError, match=said) as raised:
            Agent.from_yaml(file)
        assert str(file) in str(raised.value)


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({}, "name"),
        ({"name": 7}, r"\$\.name"),
        ({"name": "G", "tools": ["nowhere_at_all:x"]}, "nowhere_at_all"),
        ({"name": "G", "tools": ["json:no_such"]}, "json has no no_such"),
        ({"name": "G", "tools": ["json"]}, "module:name"),
        ({"name": "G", "tools": ["json:__name__"]}, "no function"),
        ({"name": "G", "model": {}}, "exactly one"),
        ({"name": "G", "concurrency": 0}, "concurrency"),
    ],
)
def test_a_wrong_definition_says_what_is_wrong(definition: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Agent.from_dict(definition)


def test_a_function_that_cannot_be_imported_is_named() -> None:
    def local(n: int) -> int:
        return n

    for agent in (Agent("G", tools=[local]), Agent("G", tools=[lambda: 1])):
        with pytest.raises(ValueError, match="top level of a module"):
            agent.to_dict()
    agent = Agent("G")
    agent.skill(local)
    with pytest.raises(ValueError, match="skill 'local'"):
        agent.to_dict()


class Team(Agent):
    def __init__(self) -> None:
        super().__init__("Team", tools=[self.lookup])
        self.specialists = {"code": "agt_code"}
        self.skill(self.whoami)

    def lookup(self, n: int) -> str:
        return f"{self.name} {n}"

    async def whoami(self) -> str:
        """Who"""
        return self.name


@pytest.mark.req("P-65")
def test_a_clone_has_other_settings_and_all_the_rest() -> None:
    agent = everything()
    other = agent.clone(instructions="Be brief.", tags=["new"])
    assert (other.instructions, other.tags, other.name, other.id) == ("Be brief.", ("new",), "Guide", "agt_other")
    assert (agent.instructions, agent.tags) == ("Answer with figures.", ("geo",))
    assert other.skills.keys() == agent.skills.keys()
    other.skill(name="more")(search)
    assert "more" not in agent.skills
    assert agent.clone().to_dict() == agent.to_dict()
    assert Agent("One").clone(name="Two").id == "agt_two"
    secret = Agent("One", api_key="k").clone().api_key
    assert secret == Secret("k")
    for changes, error in (({"nonsense": 1}, TypeError), ({"concurrency": 0}, ValueError)):
        with pytest.raises(error):
            agent.clone(**changes)


@pytest.mark.req("P-65")
def test_a_clone_of_a_subclass_is_one_of_its_own() -> None:
    team = Team()
    other = team.clone(name="Other")
    assert type(other) is Team
    other.specialists["more"] = "agt_more"
    assert team.specialists == {"code": "agt_code"}
    assert other.tools[0](1) == "Other 1"
    assert run(other.test.call("whoami")).result == "Other"
    assert run(team.test.call("whoami")).result == "Team"


def test_a_clone_has_a_memory_of_its_own() -> None:
    model = models.scripted("abc")
    agent = Agent("G", model=model)
    run(agent.arun("1", conversation_id="c"))
    run(agent.clone().arun("2", conversation_id="c"))
    assert len(model.requests[1].messages) == 1
