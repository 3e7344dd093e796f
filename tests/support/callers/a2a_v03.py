"""A caller of A2A 0.3 over JSON-RPC."""

from tests.support.kind_caller import KindCaller


class A2aV03Caller(KindCaller):
    """Sends 0.3 messages to agents at a hub."""

    slug = "a2a-0.3"
    send_method = "message/send"
    get_method = "tasks/get"
    cancel_method = "tasks/cancel"
