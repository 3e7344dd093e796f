import pytest

from tests.requirements.plugin import LEDGER, read_ledger

RULES = (
    "[First]\nA-01 A rule of the first kind.\nA-02 Another, "
    + "very " * 40
    + "long.\n[Second]\nB-01 A rule of another kind.\n"
)


def ledger_of(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    ledger = pytester.path / "rules.txt"
    ledger.write_text(RULES)
    pytester.makeconftest("pytest_plugins = ['tests.requirements.plugin']")
    pytester.makepyfile(test_sample="import pytest\n" + tests)
    root = str(LEDGER.parents[2])
    # A process of its own: what xdist leaves open there is not a warning here.
    return pytester.runpytest_subprocess(
        "-o", f"pythonpath={root}", f"--ledger={ledger}", "--ledger-show=list", *options
    )


def test_the_ledger_holds_every_section_and_each_id_once() -> None:
    rules = read_ledger(LEDGER).values()
    prefixes = {rule.section: {other.id[0] for other in rules if other.section == rule.section} for rule in rules}
    assert prefixes == {
        "Envelope": {"E"},
        "Platform": {"P"},
        "Dotted": {"D"},
        "Directory": {"R"},
        "AgentVault": {"V"},
        "Official": {"O"},
        "Across": {"X"},
    }
    assert all(rule.text for rule in rules)


def test_an_unknown_id_fails_collection_and_names_the_test(pytester: pytest.Pytester) -> None:
    result = ledger_of(pytester, "@pytest.mark.req('A-01', 'A-99')\ndef test_claims_too_much(): pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*test_sample.py::test_claims_too_much claims requirement 'A-99', which is not in the ledger."]
    )
    assert result.ret != 0


def test_an_unknown_id_in_a_class_fails_collection_too(pytester: pytest.Pytester) -> None:
    result = ledger_of(pytester, "@pytest.mark.req('A-99')\nclass TestMany:\n    def test_one(self): pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TestMany::test_one claims requirement 'A-99'*"])


def test_a_mark_without_ids_fails_collection(pytester: pytest.Pytester) -> None:
    result = ledger_of(pytester, "@pytest.mark.req()\ndef test_claims_nothing(): pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*test_claims_nothing: the mark 'req' names no requirement."])


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_rule_counts_only_when_one_test_passed_and_none_failed(pytester: pytest.Pytester, workers: str) -> None:
    tests = """
@pytest.mark.req("A-01")
def test_good(): pass

@pytest.mark.req("A-01", "B-01")
def test_good_again(): pass

@pytest.mark.req("B-01")
def test_bad(): assert False
"""
    result = ledger_of(pytester, tests, "-n", workers)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "First 1/2  Second 0/1  together 1/3",
            "a test of these failed:",
            "  B-01 A rule of another kind.",
            "no passing test yet:",
            "  A-02 Another, very very*…",
        ]
    )
    assert str(result.stdout).count("together 1/3") == 1


def test_what_did_not_pass_from_end_to_end_does_not_count(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.fixture
def broken(): assert False

@pytest.fixture
def torn():
    yield
    assert False

@pytest.mark.req("A-01")
def test_skips(): pytest.skip("no")

@pytest.mark.req("A-01")
@pytest.mark.xfail
def test_is_expected_to_fail(): assert False

@pytest.mark.req("A-02")
def test_fails_in_setup(broken): pass

@pytest.mark.req("B-01")
def test_fails_in_teardown(torn): pass
"""
    result = ledger_of(pytester, tests)
    result.assert_outcomes(skipped=1, xfailed=1, errors=2, passed=1)
    result.stdout.fnmatch_lines(["First 0/2  Second 0/1  together 0/3"])


def test_two_runs_add_up_and_a_failure_in_either_counts(pytester: pytest.Pytester) -> None:
    saved = str(pytester.path / "outcomes.json")
    first = "@pytest.mark.req('A-01')\ndef test_one(): pass\n\n@pytest.mark.req('A-02')\ndef test_two(): assert False\n"
    quiet = ledger_of(pytester, first, "--ledger-save", saved)
    assert "together" not in str(quiet.stdout)
    second = "@pytest.mark.req('A-02', 'B-01')\ndef test_three(): pass\n"
    result = ledger_of(pytester, second, "--ledger-add", saved)
    result.stdout.fnmatch_lines(["First 1/2  Second 1/1  together 2/3", "a test of these failed:", "  A-02 *"])


def test_a_run_of_one_file_shows_the_counts_alone(pytester: pytest.Pytester) -> None:
    result = ledger_of(pytester, "def test_it(): pass\n", "--ledger-show", "auto", "test_sample.py")
    result.stdout.fnmatch_lines(["First 0/2  Second 0/1  together 0/3"])
    assert "no passing test yet" not in str(result.stdout)
