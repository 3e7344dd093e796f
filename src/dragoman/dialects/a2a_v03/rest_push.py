"""Push configs of A2A 0.3 over HTTP+JSON: as its clients send them, each in another wrapping, and as they are shown.

    {parent, configId, config: {name, pushNotificationConfig}}      Python
    {name, pushNotificationConfig}                                  JavaScript

Whatever task a body names, the path says which is meant.
"""

import msgspec

from dragoman.dialects.jsonrpc import bad_field
from dragoman.dialects.kinds import ConfigShape, callback_of, config_object
from dragoman.dialects.official_card import V03
from dragoman.model.callbacks import Callback
from dragoman.model.json import Json, JsonObject, is_object


def read_config(body: JsonObject) -> Callback:
    """The callback that a body (in camel case) asks for. Raises BadParams."""
    holder: Json = body.get("config")
    named = holder if is_object(holder) else body
    inner: Json = named.get("pushNotificationConfig")
    try:
        config = msgspec.convert(inner if is_object(inner) else named, ConfigShape)
    except msgspec.ValidationError as error:
        problem = bad_field(error, "pushNotificationConfig")
    else:
        return callback_of(config, V03, _name_in(body, named))
    # Raised out here, or the decoder's error would hang on it, and on that every frame that holds the body.
    raise problem


def named_config(task_id: str, callback: Callback) -> JsonObject:
    """A config under its full name."""
    return {
        "name": f"tasks/{task_id}/pushNotificationConfigs/{callback.id}",
        "pushNotificationConfig": config_object(callback),
    }


def _name_in(body: JsonObject, named: JsonObject) -> str | None:
    """The config's own name where it stands beside it: alone, or at the end of its full name."""
    given: Json = body.get("configId")
    full: Json = named.get("name")
    if not given and isinstance(full, str):
        given = full.partition("/pushNotificationConfigs/")[2]
    return given if isinstance(given, str) and 0 < len(given) <= 256 else None
