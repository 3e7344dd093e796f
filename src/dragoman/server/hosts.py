"""Which Host and Origin a request may name: our own and no other. Against DNS rebinding and foreign web pages."""

from typing import Final
from urllib.parse import urlsplit

from dragoman.model.errors import NotAuthorized, WrongHost
from dragoman.model.http import Headers

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
REMEMBERED: Final = 1000


class Hosts:
    """The names this hub answers under."""

    def __init__(self, *, public_url: str, more: tuple[str, ...], loopback: bool) -> None:
        names = {urlsplit(public_url).hostname or "", *(name.lower() for name in more)}
        if loopback:
            names |= set(LOOPBACK)
        self._names = names
        self._good: set[bytes] = set()

    def check(self, headers: Headers) -> None:
        """Raises WrongHost, NotAuthorized unless the Host is ours, and so is the web page that asks, if one does."""
        host = headers.get(b"host")
        if host not in self._good:
            self._check_host(host)
        if b"origin" in headers:
            self._check_origin(headers[b"origin"])

    def _check_host(self, host: bytes | None) -> None:
        text = (host or b"").decode("ascii", "replace").lower()
        name = text[: text.rfind("]") + 1] if text.startswith("[") else text.partition(":")[0]
        if name.rstrip(".") not in self._names:
            raise WrongHost(
                f"This hub does not answer to the Host {text[:100]!r}; allow it with DRAGOMAN_HOSTS.",
                setting="hosts",
            )
        if host is not None and len(self._good) < REMEMBERED:
            self._good.add(host)  # The next time it is only looked up.

    def _check_origin(self, origin: bytes) -> None:
        try:
            name = urlsplit(origin.decode("ascii", "replace")).hostname
        except ValueError:  # a bracket that nothing closes
            name = None
        if name is None or (name not in self._names and f"[{name}]" not in self._names):
            raise NotAuthorized("Web pages of other sites may not call this hub.", reason="origin")
