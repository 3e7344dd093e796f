"""Run the commands of docs/cli/commands.toml in a real terminal, and put what they show into docs/cli.md."""

import os
import re
import socket
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Final, NamedTuple

from page import Unfit, filled
from screen import Screen, Stuck
from stable import Stable

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "cli.md"
LIST: Final = ROOT / "docs" / "cli" / "commands.toml"
PORTS: Final = (8700, 8704, 8710, 8799)  # shown on the page; each stands for one that is free here
DEMO: Final = {"agt_archive": 8702, "agt_editor": 8703, "terminal_bench_agent": 8001}


ENDED = (0, 130)  # by Ctrl-C: some were asked to stop, some were interrupted


class Step(NamedTuple):
    """One line of the list: what its words mean is said at the list's top."""

    run: str
    exit: int = 0
    aside: bool = False
    asks: str = ""
    answer: str = ""
    stays: str = ""
    stop: str = ""


class Wrong(Exception):
    """A command did not end as the list says."""


class Session:
    """The terminal, what runs in it, and what was shown."""

    def __init__(self, screen: Screen, stable: Stable) -> None:
        """Nothing ran yet."""
        self.screen = screen
        self.stable = stable
        self.shown: dict[str, str] = {}
        self._staying: dict[str, str] = {}

    def take(self, step: Step) -> None:
        """Run one step, and keep what it showed. Raises Wrong and Stuck."""
        if step.stop:
            self._stop(step.stop)
            return
        text = self._start(step) if step.stays else self._run(step)
        for agent, shown in DEMO.items():
            found = re.search(rf"{agent} .*http://localhost:(\d+)", text)
            if found and step.run == "dragoman dev":
                self.stable.port(shown, int(found[1]))
        text = self.stable.words(text)
        if not step.aside:
            self.shown[step.run] = text

    def stop_all(self) -> None:
        """Stop what stayed, the youngest first. Raises Wrong and Stuck."""
        for line in reversed(list(self._staying)):
            self._stop(line)

    def _run(self, step: Step) -> str:
        screen, pane = self.screen, self.screen.main
        screen.clear(pane)
        code = screen.run(pane, self.stable.real(step.run), asks=step.asks, answer=step.answer)
        if code != step.exit:
            raise Wrong(f"{step.run}: exit code {code}, expected {step.exit}\n{screen.shown(pane)}")
        if code:
            screen.run(pane, "echo $?")
        return screen.shown(pane).removesuffix("$").rstrip()

    def _start(self, step: Step) -> str:
        pane = self.screen.window()
        self.screen.clear(pane)
        self.screen.type(pane, self.stable.real(step.run))
        self.screen.wait(pane, lambda: step.stays in self.screen.shown(pane))
        self._staying[step.run] = pane
        return self.screen.shown(pane)

    def _stop(self, line: str) -> None:
        pane = self._staying.pop(line)
        code = self.screen.interrupt(pane)
        if code not in ENDED:
            raise Wrong(f"{line}: exit code {code} after Ctrl-C\n{self.screen.shown(pane)}")


def main(words: list[str]) -> int:
    """Make the page again, or look whether it would change."""
    steps = [Step(**step) for step in tomllib.loads(LIST.read_text())["step"]]
    before = PAGE.read_text()
    try:
        after = filled(before, _captured(steps))
    except (Wrong, Stuck, Unfit) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if "--check" in words:
        print("the page is as it was" if after == before else "error: the page would change; scripts/capture-cli")
        return int(after != before)
    PAGE.write_text(after)
    return 0


def _captured(steps: list[Step]) -> dict[str, str]:
    ports: dict[int, int] = {}
    for shown in PORTS:
        ports[shown] = _free_port(max([shown + 1000, *(port + 2 for port in ports.values())]))
    ports[8701] = ports[8700] + 1  # what is advised where the first is taken
    with tempfile.TemporaryDirectory(prefix="dragoman-capture-") as folder:
        home = Path(folder).resolve() / "home"
        home.mkdir()
        session = Session(
            Screen(f"dragoman-{os.getpid()}", home, _environment(home, ports[8700])), Stable(str(home), ports)
        )
        try:
            for number, step in enumerate(steps, 1):
                print(f"\r\x1b[K{number}/{len(steps)} {step.run or step.stop}", end="", file=sys.stderr, flush=True)
                session.take(step)
            session.stop_all()
        finally:
            session.screen.close()
            print("", file=sys.stderr)
        return session.shown


def _environment(home: Path, port: int) -> dict[str, str]:
    hub = {"DRAGOMAN_PORT": str(port), "DRAGOMAN_URL": f"http://127.0.0.1:{port}"}
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    return {
        "HOME": str(home),
        "PATH": path,
        "LANG": "C.UTF-8",
        "TMUX_TMPDIR": str(home.parent),
        "HISTFILE": "/dev/null",
        **hub,
    }


def _free_port(first: int) -> int:
    """A free port from there on, of four digits like those shown, so that columns keep their width."""
    for port in range(first, 10_000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise Wrong("no port of four digits is free")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
