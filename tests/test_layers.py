"""The layers are not only drawn: a wrong import, planted in a copy of the source, is found and named."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTRACTS = {
    "layers": "Layers: the upper imports the lower, siblings meet at the ports",
    "dialects": "Dialects: none imports another",
    "model alone": "Dialects: they import the model alone",
    "purity": "Purity: model and dialects do no I/O, read no clock, draw no chance",
    "sdk": "SDK: only an agent that listens and a hub in process import the server",
    "base": "Base install: what the SDK needs imports nothing of the extras",
}


def lint(copy: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def copy_of_source(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_source_keeps_every_contract(tmp_path: Path) -> None:
    result = lint(copy_of_source(tmp_path))
    assert result.returncode == 0, result.stdout
    assert "0 broken" in result.stdout


@pytest.mark.planted
@pytest.mark.parametrize(
    ("place", "wrong_import", "contract"),
    [
        ("model/planted.py", "import dragoman.hub", "layers"),
        ("ports/planted.py", "from dragoman.dialects import dialect", "layers"),
        ("hub/planted.py", "import dragoman.backends.sqlite", "layers"),
        ("delivery/planted.py", "def later() -> None:\n    import dragoman.hub", "layers"),
        ("net/planted.py", "import dragoman.security", "layers"),
        ("hub/planted.py", "import dragoman.config", "layers"),
        ("planted/__init__.py", "", "layers"),
        ("dialects/platform/planted.py", "import dragoman.dialects.a2a_v10", "dialects"),
        ("dialects/platform/planted.py", "from dragoman.dialects import DIALECTS", "dialects"),
        ("dialects/jsonrpc.py", "import dragoman.dialects.platform.wire", "dialects"),
        ("dialects/newcomer/__init__.py", "import dragoman.dialects.platform", "dialects"),
        ("dialects/platform/planted.py", "import dragoman.ports", "model alone"),
        ("model/planted.py", "import time", "purity"),
        ("dialects/platform/planted.py", "from os import environ", "purity"),
        ("net/planted.py", "import joserfc", "base"),
        ("dialects/platform/planted.py", "import starlette", "base"),
        ("sdk/planted.py", "import uvicorn", "base"),
        ("sdk/client/client.py", "def later() -> None:\n    import dragoman.server.app", "sdk"),
        ("security/key_manager.py", "import cryptography", "base"),
    ],
)
def test_a_wrong_import_is_found_and_named(tmp_path: Path, place: str, wrong_import: str, contract: str) -> None:
    copy = copy_of_source(tmp_path)
    planted = copy / "src" / "dragoman" / place
    planted.parent.mkdir(exist_ok=True)
    (planted.parent / "__init__.py").touch()
    with planted.open("a") as file:
        file.write(wrong_import + "\n")
    result = lint(copy)
    assert result.returncode == 1, result.stderr
    assert f"{CONTRACTS[contract]} BROKEN" in result.stdout
