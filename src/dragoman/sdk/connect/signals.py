"""SIGINT and SIGTERM: the first asks to stop, a second one ends the process at once."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping_by(stop: Callable[[], None]) -> Generator[None]:
    """Let signals call `stop` on the running loop; outside of the main thread there are none to take."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    came: list[int] = []

    def take(number: int) -> None:
        if came:
            exit_at_once(128 + number)
        came.append(number)
        stop()

    for number in SIGNALS:
        loop.add_signal_handler(number, take, number)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def exit_at_once(code: int) -> None:
    """End the process without waiting for threads that may never end."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
