"""Keys that AgentVault's own library stored are found by ours, and the other way round."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.peers import RECIPES, ROOT, peer_python


@pytest.mark.req("V-10", "V-31")
def test_each_librarys_keyring_entries_and_key_files_are_read_by_the_other(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(peer_python("agentvault-keyring")), str(RECIPES / "agentvault_keys.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    ours = ["of-us", "us", "our-secret"]
    assert seen == {
        "keyring, theirs read by us": ["of-them", "them", "their-secret"],
        "keyring, ours read by them": ours,
        "keys.env, ours read by them": ours,
        "keys.json, ours read by them": ours,
    }
    assert "of-us" not in done.stderr
    assert "our-secret" not in done.stderr
