"""Runs a module with a sampler inside: where the CPU time of a busy process goes.

`python sampler.py OUTPUT MODULE ARGUMENTS…`. SIGUSR2 starts and stops the sampling; OUTPUT is written at the stop.

The kernel's profiling timer counts CPU time, so a waiting process is not sampled. At each sample every thread's stack
is charged with the CPU time that this very thread used since the last one, so the sum per thread is exact and only its
spread over functions is drawn by lot. Nothing is instrumented, so small functions are not made to look big. What it
cannot see: time in compiled code (the loop, the parser) counts for the Python function that called it or, when none
did, for the next one that it calls; and threads other than the main one are seen where they give up the interpreter.
"""

import collections
import json
import runpy
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Final

INTERVAL_S: Final = 0.001  # of CPU time; the kernel rounds up to its own tick
DEPTH: Final = 60

stacks: collections.Counter[str] = collections.Counter()
samples = 0
running = False
spent: dict[int, float] = {}


def stack_of(frame: FrameType | None) -> str:
    """The frames, outermost first, as `file:function` joined by semicolons."""
    found: list[str] = []
    while frame is not None and len(found) < DEPTH:
        path = frame.f_code.co_filename
        # Enough of the path to tell modules apart, and none of the machine's.
        short = path.partition("site-packages/")[2] or path.partition("/src/")[2] or path.rpartition("/")[2]
        found.append(f"{short}:{frame.f_code.co_name}")
        frame = frame.f_back
    return ";".join(reversed(found))


def charge(stack_by_thread: dict[int, str]) -> None:
    """Charge each thread's stack with what the thread used since the last time."""
    for thread, stack in stack_by_thread.items():
        try:
            now = time.clock_gettime(time.pthread_getcpuclockid(thread))
        except OSError:  # it ended
            continue
        # A thread that is new since the last sample has used all of its time in between.
        stacks[stack] += round((now - spent.get(thread, 0.0)) * 1e9)
        spent[thread] = now


def sample(_signal: int, frame: FrameType | None) -> None:
    """Take one sample."""
    global samples
    if not running:
        return
    samples += 1
    here = threading.get_ident()
    found = {thread: f"other;{stack_of(at)}" for thread, at in sys._current_frames().items()}
    found[here] = f"main;{stack_of(frame)}"  # the frame that was interrupted, not this one
    charge(found)


def toggle(_signal: int, _frame: FrameType | None) -> None:
    """Start, or stop and write."""
    global running
    running = not running
    if running:
        charge(dict.fromkeys(sys._current_frames(), ""))
        stacks.clear()
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)
        return
    signal.setitimer(signal.ITIMER_PROF, 0)
    unfinished = OUTPUT.with_suffix(".part")
    unfinished.write_text(json.dumps({"samples": samples, "stacks": stacks}))
    unfinished.replace(OUTPUT)


if __name__ == "__main__":
    OUTPUT = Path(sys.argv[1])
    module = sys.argv[2]
    sys.argv = [module, *sys.argv[3:]]
    # The script's own folder must not shadow what the module imports (there is an http.py here).
    sys.path.pop(0)
    signal.signal(signal.SIGPROF, sample)
    signal.signal(signal.SIGUSR2, toggle)
    runpy.run_module(module, run_name="__main__", alter_sys=True)
