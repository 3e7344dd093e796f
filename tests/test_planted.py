"""Every fault that tests plant still finds the part that it takes the place of, whatever that part is called now.

Whether its test finds it is proved by `scripts/test --planted`. Here a process of its own is altered, never this one.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLANT_EACH = """
from tests.support.planted import BUGS, GAUGES, KILL_POINTS
from tests.support.planting import take_out

for name, plant in {**BUGS, **KILL_POINTS, **GAUGES}.items():
    print(name, flush=True)
    plant(1)
    take_out()
"""


def test_every_fault_finds_its_place() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLANT_EACH], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    planted = done.stdout.split()
    assert done.returncode == 0, f"{planted[-1:]} is not planted: {done.stderr}"
    assert len(planted) > 50
