"""An agent of python-a2a on its own Flask server, which says what it heard."""

from announcing import HOST, port_to_serve
from python_a2a import A2AServer, Message, MessageRole, TextContent, run_server


class Repeater(A2AServer):
    """Says what it heard."""

    def handle_message(self, message: Message) -> Message:
        """One message."""
        return Message(content=TextContent(text=f"You said: {message.content.text}"), role=MessageRole.AGENT)


def main() -> None:
    """Serve until stopped."""
    port = port_to_serve("An agent of python-a2a.")
    repeater = Repeater(name="repeater", description="Says what it heard.", url=f"http://{HOST}:{port}")
    run_server(repeater, host=HOST, port=port)


if __name__ == "__main__":
    main()
