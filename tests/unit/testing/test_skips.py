"""The gate accepts only the skips that it lists."""

from __future__ import annotations

import pytest

from tests.support.machine import ROOT
from tests.support.skips import OPTION, reasons_in

pytest_plugins = ("pytester",)

TESTS = """
    import pytest

    @pytest.fixture
    def corpora():
        pytest.skip("no shared corpora: deltas (set SHARED_CORPORA to their folder)")

    def test_that_asks_a_fixture(corpora):
        pass

    def test_that_skips_itself():
        pytest.skip("no Docker Compose")

    @pytest.mark.skipif(True, reason="no /proc")
    def test_with_a_mark():
        pass

    @pytest.mark.xfail(reason="known")
    def test_that_is_known_to_fail():
        raise AssertionError

    def test_that_passes():
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("listed", "failed"),
    [
        (None, 0),
        ("", 3),
        ("no Docker Compose\n# a comment\n\nno /proc", 1),
        ("no Docker*\nno shared corpora: * (set SHARED_CORPORA to their folder)", 1),
        ("no*", 0),
    ],
)
def test_a_skip_that_is_not_listed_fails(
    pytester: pytest.Pytester, listed: str | None, failed: int
) -> None:
    pytester.makepyfile(TESTS)
    arguments = ["-p", "tests.support.skips"]
    if listed is not None:
        pytester.path.joinpath("skips").write_text(listed)
        arguments += [OPTION, "skips"]
    ended = pytester.runpytest_inprocess(*arguments)
    outcomes = ended.parseoutcomes()
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == failed
    assert outcomes.get("skipped", 0) == 3 - failed
    assert outcomes["xfailed"] == outcomes["passed"] == 1
    assert ended.ret == (1 if failed else 0)


@pytest.mark.slow
def test_a_module_that_is_skipped_fails_unless_it_is_listed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\npytest.importorskip('no_such_module')")
    pytester.path.joinpath("skips").write_text("no Docker Compose")
    ended = pytester.runpytest_inprocess("-p", "tests.support.skips", OPTION, "skips")
    ended.stdout.fnmatch_lines(["*doesn't list: could not import 'no_such_module'*"])
    assert ended.ret != 0


def test_a_list_that_is_missing_is_an_error(pytester: pytest.Pytester) -> None:
    ended = pytester.runpytest_inprocess("-p", "tests.support.skips", OPTION, "nowhere")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR


def test_the_gate_gives_its_list() -> None:
    command = (ROOT / ".ci" / "run").read_text()
    assert f"{OPTION}=.ci/skips" in command
    assert reasons_in(ROOT / ".ci" / "skips")
