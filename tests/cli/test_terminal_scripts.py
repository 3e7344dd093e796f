"""The terminal bench agent's scripts: each question gets the right one, its bash is sound, and it does what it says."""

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.cli.demo.terminal.rules import RULES, Rule, rule_for
from dragoman.cli.demo.terminal.solve import solve

FOLLOW_UPS = (
    "Add email alerting to that script",
    "Also post it to our Slack webhook",
    "Add logging to it",
    "Schedule it every night",
    "Run it in a loop every 30 seconds",
)
HOSTILE = "\"; rm -rf ~; echo '$(touch /tmp/x)` # \\ 100MB % “x” 'y' /etc `z` a@b.example https://x.example/$(y)"


def checked(script: str | None) -> str:
    """The script, if bash can read it."""
    assert script is not None
    read = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=10, check=False)
    assert (read.returncode, read.stderr) == (0, ""), script
    return script


def ran(script: str | None, *words: str, cwd: Path, **more: str) -> str:
    """What the script says when it is run in a folder."""
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "LC_ALL": "C.UTF-8", **more}
    command = ["bash", "-c", checked(script), "script", *words]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=20, check=False)
    assert done.stderr == "", done.stderr
    return done.stdout


@pytest.mark.req("D-13")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.about)
def test_every_rule_answers_its_own_example_with_sound_bash_and_takes_every_addition(rule: Rule) -> None:
    assert rule_for(rule.example) is rule
    plain = checked(solve([rule.example]))
    together = checked(solve([rule.example, *FOLLOW_UPS]))
    assert plain.startswith("#!/usr/bin/env bash\n# ")
    assert "mail -s" in together
    assert "$webhook_url" in together
    assert '>> "$log_file"' in together
    assert "crontab" in together
    assert "sleep 30" in together


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.about)
def test_nothing_in_a_question_leaves_its_quotes(rule: Rule) -> None:
    for question in (f"{rule.example} {HOSTILE}", f"{rule.example} '{HOSTILE}' \"{HOSTILE}\""):
        checked(solve([question, f"Add e-mail alerts {HOSTILE}"]))


@pytest.mark.parametrize(
    "evil", ["$(touch pwned)", "`touch pwned`", "x; touch pwned", "x | touch pwned", "& touch pwned"]
)
def test_what_is_quoted_in_a_question_is_never_run(evil: str, tmp_path: Path) -> None:
    for question in (
        f'Find all files that contain "{evil}"',
        f'Replace "{evil}" with "{evil}" in all .md files',
        f'Kill the process called "{evil}"',
        f'Check that https://127.0.0.1:1/"{evil}" answers',
    ):
        ran(solve([question]), cwd=tmp_path)
    assert not (tmp_path / "pwned").exists()


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60), st.sampled_from(RULES))
def test_whatever_stands_in_a_question_the_answer_is_sound_bash(noise: str, rule: Rule) -> None:
    script = solve([f"{rule.example} {noise}"])
    if script is not None and "\0" not in script:
        checked(script)


@pytest.mark.req("D-13")
def test_the_documents_questions_are_solved(tmp_path: Path) -> None:
    (tmp_path / "big file.bin").touch()
    os.truncate(tmp_path / "big file.bin", 101 * 1024 * 1024)
    (tmp_path / "small.bin").write_bytes(b"x")
    found = solve(["Write a bash script to find all files larger than 100MB"])
    assert ran(found, cwd=tmp_path) == "101M ./big file.bin\n"
    assert ran(found, ".", "200M", cwd=tmp_path) == ""
    disk = solve(["Write a bash script to monitor disk usage"])
    assert "full (" in ran(disk, "0", cwd=tmp_path)
    assert ran(disk, "101", cwd=tmp_path) == "All file systems are below 101 %.\n"


@pytest.mark.req("D-13")
def test_a_follow_up_adds_mail_to_the_script_before(tmp_path: Path) -> None:
    mail = tmp_path / "mail"
    mail.write_text('#!/bin/bash\n{ echo "$@"; cat; } > "$HOME/sent"\n')
    mail.chmod(0o755)
    questions = ["Write a bash script to monitor disk usage", "Add email alerting to that script for ops@example.org"]
    told = ran(solve(questions), "0", cwd=tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    sent = (tmp_path / "sent").read_text()
    assert sent.startswith("-s disk-usage on ")
    assert sent.splitlines()[0].endswith(" ops@example.org")
    assert sent.partition("\n")[2] == told


def test_a_script_that_was_given_is_run_as_it_is(tmp_path: Path) -> None:
    given_script = "cat <<X\n  THE_SCRIPT 'as it is'\nX\n"
    for script in (
        solve(["Add logging to that script"], given_script),
        solve([f"Please add logging to this script:\n```bash\n{given_script}```"]),
    ):
        log = tmp_path / "it.log"
        assert ran(script, cwd=tmp_path, LOG_FILE=str(log)) == "  THE_SCRIPT 'as it is'\n"
        assert log.read_text().endswith("   THE_SCRIPT 'as it is'\n")
        log.unlink()


def test_a_later_question_changes_the_threshold_or_begins_anew() -> None:
    assert 'threshold="${1:-80}"' in checked(solve(["Monitor disk usage"]))
    assert 'threshold="${1:-95}"' in checked(solve(["Monitor disk usage", "Make it 95%"]))
    assert "*/5 * * * *" in checked(solve(["Monitor disk usage", "run that script every 5 minutes"]))
    anew = checked(solve(["Monitor disk usage and send me an e-mail", "Find duplicate files"]))
    assert "sha256sum" in anew
    assert "mail" not in anew


def test_scripts_about_files_do_what_they_say(tmp_path: Path) -> None:
    for name, text in (("a.txt", "same"), ("b b.txt", "same"), ("c.md", "colour\ncolour red\n"), ("old.log", "x")):
        (tmp_path / name).write_text(text)
    long_ago = time.time() - 40 * 86_400
    os.utime(tmp_path / "old.log", (long_ago, long_ago))
    assert sorted(ran(solve(["Find duplicate files"]), cwd=tmp_path).split("\n")) == ["", "./a.txt", "./b b.txt"]
    assert ran(solve(["Find all files that contain 'red'"]), cwd=tmp_path) == "./c.md:2:colour red\n"
    assert ran(solve(["Delete files older than 30 days"]), cwd=tmp_path) == "./old.log\n"
    assert (tmp_path / "old.log").exists()
    assert ran(solve(["Delete files older than 30 days"]), ".", "--delete", cwd=tmp_path) == "./old.log\n"
    assert not (tmp_path / "old.log").exists()
    assert ran(solve(["Replace 'colour' with 'color' in all .md files"]), cwd=tmp_path) == "./c.md\n"
    assert (tmp_path / "c.md").read_text() == "color\ncolor red\n"
    assert ran(solve(["Count the lines of all .md files"]), cwd=tmp_path) == "2\n"
    assert ran(solve(["Show the 2 largest files"]), cwd=tmp_path).splitlines()[0].endswith("./c.md.bak")


def test_backups_are_kept_to_their_number(tmp_path: Path) -> None:
    source, target = tmp_path / "docs", tmp_path / "out"
    source.mkdir()
    (source / "x").write_text("x")
    target.mkdir()
    for day in (1, 2, 3):
        (target / f"docs-2020010{day}-000000.tar.gz").touch()
    told = ran(solve(["Back up ~/docs and keep the last 2"]), str(source), str(target), cwd=tmp_path)
    assert told.splitlines()[0].startswith(f"wrote {target}/docs-")
    assert len(list(target.iterdir())) == 2
    assert (target / "docs-20200103-000000.tar.gz").exists()


def test_scripts_about_logs_and_tables_do_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "access.log").write_text("10.0.0.1 GET\n10.0.0.2 GET\n10.0.0.1 GET\n")
    (tmp_path / "app.log").write_text("ok\nERROR 17 at 9\nERROR 18 at 9\nFatal: x\n")
    (tmp_path / "data.csv").write_text("name,value\na,1.5\nb,2\n")
    found = ran(solve(["Show the top 10 IP addresses in access.log"]), cwd=tmp_path)
    assert [line.split() for line in found.splitlines()] == [["2", "10.0.0.1"], ["1", "10.0.0.2"]]
    errors = ran(solve(["Count the errors in app.log"]), cwd=tmp_path).splitlines()
    assert errors[0] == "3 errors in app.log"
    assert errors[1].split() == ["2", "ERROR", "N", "at", "N"]
    assert ran(solve(["Sum the second column of data.csv"]), cwd=tmp_path) == "3.5\n"


def test_scripts_about_processes_run_here(tmp_path: Path) -> None:
    assert len(ran(solve(["Show the 3 processes that use the most memory"]), cwd=tmp_path).splitlines()) <= 4
    assert "of the memory" in ran(solve(["Warn when memory usage is above 90%"]), cwd=tmp_path)
    assert "load" in ran(solve(["Is the load of this machine too high?"]), cwd=tmp_path)
    name = f"zz{os.getpid()}"
    (tmp_path / name).symlink_to(shutil.which("sleep") or "/bin/sleep")
    with subprocess.Popen([str(tmp_path / name), "60"]) as victim:
        # Somebody has to take note of its end, or it stays as a zombie.
        threading.Thread(target=victim.wait).start()
        assert ran(solve([f"Kill the process called '{name}'"]), cwd=tmp_path) == f"asked {victim.pid} to end\n"


def test_what_no_rule_answers_is_not_answered() -> None:
    assert solve(["What is the meaning of life?"]) is None
    assert solve(["Monitor disk usage", "What is the meaning of life?"]) is None
