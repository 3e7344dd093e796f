"""OpenTelemetry's own environment variables, as they stand: where spans go, under which name, and how many of them.

Those of the traces (`OTEL_EXPORTER_OTLP_TRACES_…`) count before the general ones. What cannot be used is said once, and
left out: an unusable variable never keeps a hub from starting.
"""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman import __version__
from dragoman.model.task import Trace
from dragoman.observe.otlp import CODECS, PROTOBUF
from dragoman.observe.span import Value

ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES: Final = "/v1/traces"
SERVICE: Final = "dragoman"
TIMEOUT_S: Final = 10.0
_SAMPLERS: Final = frozenset(
    {
        "always_on",
        "always_off",
        "traceidratio",
        "parentbased_always_on",
        "parentbased_always_off",
        "parentbased_traceidratio",
    }
)
_PARENT_BASED: Final = "parentbased_"


class Sampler(msgspec.Struct, frozen=True, kw_only=True):
    """Which traces are exported: a share of them, and where a caller has decided, as it did."""

    share: float = 1.0
    follows_parent: bool = True

    def takes(self, trace: Trace) -> bool:
        """Whether a trace is exported. Every hop that goes by the same share decides the same."""
        if self.follows_parent and trace.parent_span_id is not None:
            return trace.sampled
        return int(trace.trace_id[16:], 16) < self.share * 2**64


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """Where spans go, and how."""

    url: str
    headers: Mapping[bytes, bytes]
    resource: Mapping[str, Value]
    sampler: Sampler
    protocol: str = PROTOBUF
    timeout_s: float = TIMEOUT_S


def destination(environ: Mapping[str, str], warn: Callable[[str], None]) -> Destination | None:
    """What the environment says; None where spans go nowhere."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none":
        return None
    own = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    general = environ.get(ENDPOINT)
    url = own or (general.rstrip("/") + TRACES if general else None)
    if not url:
        return None
    if not _is_url(url):
        warn(f"{ENDPOINT}={url!r} is no http or https URL: no spans are exported")
        return None
    protocol = _of_traces(environ, "PROTOCOL") or PROTOBUF
    if protocol not in CODECS:
        warn(f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol!r}: there are {', '.join(CODECS)}; {PROTOBUF} is used")
        protocol = PROTOBUF
    return Destination(
        url=url,
        headers={
            name.lower().encode("latin-1", "ignore"): value.encode("latin-1", "ignore")
            for name, value in _pairs(_of_traces(environ, "HEADERS") or "").items()
        },
        resource=_resource(environ),
        sampler=_sampler(environ, warn),
        protocol=protocol,
        timeout_s=_timeout_s(_of_traces(environ, "TIMEOUT")),
    )


def _of_traces(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}") or environ.get(f"OTEL_EXPORTER_OTLP_{name}")


def _is_url(url: str) -> bool:
    try:
        split = urlsplit(url)
    except ValueError:
        return False
    return split.scheme in ("http", "https") and bool(split.hostname)


def _pairs(text: str) -> dict[str, str]:
    """`a=1,b=2`, values percent-encoded (W3C baggage)."""
    found: dict[str, str] = {}
    for each in text.split(","):
        name, sign, value = each.partition("=")
        if sign and name.strip():
            found[unquote(name.strip())] = unquote(value.strip())
    return found


def _resource(environ: Mapping[str, str]) -> dict[str, Value]:
    said = _pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    name = environ.get("OTEL_SERVICE_NAME") or said.get("service.name") or SERVICE
    return {"service.version": __version__, **said, "service.name": name}


def _sampler(environ: Mapping[str, str], warn: Callable[[str], None]) -> Sampler:
    name = environ.get("OTEL_TRACES_SAMPLER") or "parentbased_always_on"
    if name not in _SAMPLERS:
        warn(f"OTEL_TRACES_SAMPLER={name!r}: there are {', '.join(sorted(_SAMPLERS))}; parentbased_always_on is used")
        name = "parentbased_always_on"
    kind = name.removeprefix(_PARENT_BASED)
    share = {"always_on": 1.0, "always_off": 0.0}.get(kind)
    if share is None:
        said = environ.get("OTEL_TRACES_SAMPLER_ARG", "1.0")
        share = _number(said)
        if share is None or not 0.0 <= share <= 1.0:
            warn(f"OTEL_TRACES_SAMPLER_ARG={said!r}: expected 0 to 1; 1 is used")
            share = 1.0
    return Sampler(share=share, follows_parent=name.startswith(_PARENT_BASED))


def _timeout_s(said: str | None) -> float:
    """Milliseconds, as the specification has them."""
    value = None if said is None else _number(said)
    return TIMEOUT_S if value is None or value <= 0 else min(value / 1000, 60.0)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None
