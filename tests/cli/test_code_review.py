"""The terminal bench agent's code analysis: what it sees, in which line, and that it runs nothing."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.cli.demo.terminal.review import code_in, review
from dragoman.cli.demo.terminal.solve import solve

PYTHON = """\
def average(numbers, seen=[]):
    total = 0
    for i in range(len(numbers)):
        total += numbers[i + 1]
    try:
        list = eval("1")
    except:
        pass
    if total == None:
        return
    return total / len(numbers)
"""


def lines_of(said: str | None) -> list[str]:
    assert said is not None
    return said.splitlines()[1:]


@pytest.mark.req("D-13")
def test_faults_in_python_are_named_by_line() -> None:
    said = review(f"Find the bug:\n```python\n{PYTHON}```")
    faults = {int(line.split()[1].rstrip(":")): line for line in lines_of(said)}
    assert said is not None
    assert said.startswith("I looked at 11 lines of Python and saw 7 things:")
    for line, word in ((1, "shared by all calls"), (4, "beyond the end"), (9, "is None")):
        assert word in faults[line]


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("while True:\n    x = 1", "never ends"),
        ("i = 0\nwhile i < 10:\n    print(i)", "nothing in the loop changes i"),
        ("for x in items:\n    items.remove(x)", "changed while it is walked through"),
        ("for x in items:\n    return x", "first round"),
        ("for i in range(len(xs) + 1):\n    print(xs[i])", "one step too far"),
        ("if x is 5:\n    print(x)", "identity"),
        ("import subprocess\nsubprocess.run(command, shell=True)", "shell=True"),
        ("import db\ndb.execute(f'select {x}')", "SQL"),
        ("import os\nf = open('x')", "not closed"),
        ("def f(:\n    pass", "this is no Python"),
    ],
)
def test_each_fault_of_python_is_seen(code: str, word: str) -> None:
    assert word in (review(f"```python\n{code}\n```") or "")


@pytest.mark.parametrize(
    ("language", "code", "word"),
    [
        ("bash", "rm -rf $dir/", "would make this rm -r delete /"),
        ("bash", "for f in $(ls); do", "torn apart"),
        ("bash", "if [ $a == 1 ]; then", "unquoted variable"),
        ("bash", "name = value", "no spaces around ="),
        ("bash", "cd /tmp/build", "wrong folder"),
        ("js", "for (let i = 0; i <= list.length; i++) {}", "one step too far"),
        ("js", "if (x = 1) { y() }", "assigns"),
        ("js", "function f() { return [1", "never closed"),
        ("c", "gets(line);", "how large the buffer is"),
        ("c", "for (i = 0; i < n; i++);", "semicolon"),
        ("c", "int main(void) { return 0; }}", "closes nothing"),
    ],
)
def test_each_fault_of_other_languages_is_seen(language: str, code: str, word: str) -> None:
    assert word in (review(f"```{language}\n{code}\n```") or "")


def test_good_code_is_left_alone() -> None:
    for code in (
        "python\ndef f(xs: list[int]) -> int:\n    return sum(xs)\n",
        'bash\nset -eu\nfor file in ./*.txt; do\n  rm -- "$file"\ndone\n',
        "js\nconst total = list.reduce((a, b) => a + b, 0);\n",
    ):
        assert "saw no fault" in (review(f"```{code}```") or "")


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("What is wrong here?\ndef f():\n    return 1\n", "Python"),
        ("Find the bug in this loop: for i in range(len(xs)):\n    print(xs[i + 1])", "Python"),
        ("Debug this\n#!/bin/bash\necho hi\n", "shell"),
        ("Why?\nconst a = 1;\nconsole.log(a)", "JavaScript"),
        ("Why?\n#include <stdio.h>\n", "C"),
    ],
)
def test_the_language_is_told_from_the_code(question: str, language: str) -> None:
    found = code_in(question)
    assert found is not None
    assert found[0] == language


def test_a_question_without_code_has_none() -> None:
    assert review("Is Python faster than C?") is None


@pytest.mark.parametrize(
    "piece", ["\n", " ", "for ", "for\n", "rm -r ", "int a(", "[ $a ", "(", "def f(:\n", "`", "-r ", "keep "]
)
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    started = time.monotonic()
    for question in (text, f"```python\n{text}```", f"```bash\n{text}```", f"```c\n{text}```", f"```js\n{text}```"):
        review(question)
        solve([question, question])
    assert time.monotonic() - started < 5


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["python", "bash", "js", "c", ""]))
def test_no_text_is_too_strange(text: str, language: str) -> None:
    assert review(f"```{language}\n{text}\n```") is not None
