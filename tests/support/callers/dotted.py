"""A caller of dotted."""

from tests.support.kind_caller import KindCaller


class DottedCaller(KindCaller):
    """Sends dotted messages to agents at a hub."""

    slug = "dotted"
    send_method = "message.send"
    get_method = "task.get"
    cancel_method = "task.cancel"
    id_name = "taskId"
