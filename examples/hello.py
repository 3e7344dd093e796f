from dragoman import Agent

agent = Agent("Hello")


@agent.skill
def greet(name: str) -> str:
    return f"Hello, {name}!"


agent.start()
