"""The TypeScript SDK: it builds under the strictest rules, its own tests pass, it is small, its pages are true."""

import gzip
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Block, blocks
from tests.support.hub import HubProcess
from tests.typescript.building import SOURCE, installed, node
from tests.typescript.running import environment

TYPESCRIPT = [block for block in blocks() if block.language == "typescript"]
MOST_BYTES = {"{ a2a }": 10_000, "{ Agent }": 20_000, "*": 21_500}
TESTS_S = 120.0
# A member of a class or an interface; what implements overloads, or a class's own constants, is described elsewhere.
MEMBER = re.compile(
    r"  (?!constructor|static override|async ask<Value>\(prompt: string, schema\?: Schema)"
    r"(?:readonly |static |get |set |async |\*)*['\w~]+\??[(:<]"
)


def test_its_own_tests_pass_against_a_real_hub(hub: HubProcess, sdk: Path) -> None:
    files = [f"dist/test/{path.stem}.js" for path in sorted((SOURCE / "test").glob("*.test.ts"))]
    done = subprocess.run(
        [node(), "--test", "--test-reporter=tap", *files],
        cwd=sdk,
        env=environment(hub),
        capture_output=True,
        text=True,
        timeout=TESTS_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    counts = {name: int(count) for name, count in re.findall(r"^# (\w+) (\d+)$", done.stdout, re.MULTILINE)}
    assert (counts["fail"], counts["skipped"], counts["todo"]) == (0, 0, 0)
    assert counts["pass"] > 40


@pytest.mark.parametrize("wanted", MOST_BYTES)
def test_what_a_program_loads_of_it_is_small(sdk: Path, tmp_path: Path, wanted: str) -> None:
    """As a page or a worker gets it: bundled with what it needs, for browsers too, minified and compressed."""
    bundler = installed(Path(__file__).parent / "bundling") / "node_modules" / ".bin" / "esbuild"
    entry, made = tmp_path / "entry.js", tmp_path / "bundle.js"
    entry.write_text(f"export {wanted} from '{sdk / 'dist' / 'esm' / 'index.js'}';")
    words = ("--bundle", "--minify", "--format=esm", "--platform=browser", f"--outfile={made}")
    subprocess.run([bundler, entry, *words], check=True, capture_output=True, timeout=60)
    size = len(gzip.compress(made.read_bytes(), 9))
    assert size <= MOST_BYTES[wanted], f"{wanted} is {size} bytes"


def test_the_lock_names_no_registry() -> None:
    lock = (SOURCE / "package-lock.json").read_text()
    assert "://" not in lock
    assert '"integrity": "sha512-' in lock


def test_the_source_has_no_any_and_no_default_export() -> None:
    for path in sorted((SOURCE / "src").rglob("*.ts")):
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.DOTALL)
        assert not re.search(r"[:<|&,(]\s*any\b|\bas any\b|export default|@ts-", code), path


@pytest.mark.parametrize("path", sorted((SOURCE / "src").rglob("*.ts")), ids=lambda path: path.name)
def test_every_public_thing_is_described(path: Path) -> None:
    """The file, whatever of it the package exports, and every member of that, has a line that says what it is."""
    public = set(re.findall(r"\w+", (SOURCE / "src" / "index.ts").read_text()))
    lines = path.read_text().splitlines()
    assert lines[0].startswith("/**")
    inside = False
    for before, line in pairwise(lines):
        declared = re.match(r"export (?:async )?(class|interface|function|type|const) (\w+)", line)
        is_public = declared is not None and declared[2] in public
        if declared or line == "}":
            inside = is_public and declared is not None and declared[1] in ("class", "interface")
        elif inside:
            is_public = MEMBER.match(line) is not None
        if is_public:
            assert before.endswith("*/"), line


@pytest.mark.parametrize("block", TYPESCRIPT, ids=lambda block: f"{block.page}:{block.line}")
def test_typescript_on_a_page_is_an_example_word_for_word(block: Block) -> None:
    assert block.file is not None, "name the file above the block: <!-- sdk-typescript/examples/call.ts -->"
    assert block.text.strip() in (ROOT / block.file).read_text()
