"""What a run of the tests reports, also where a part of pytest fails."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

NO_PARSER = """
    def test_red(monkeypatch):
        def broken(*given, **named):
            raise SystemError("AST constructor recursion depth mismatch (before=147, after=244)")
        monkeypatch.setattr("ast.parse", broken)
        assert 1 == 2

    def test_green():
        pass
"""


def test_a_failure_whose_source_cannot_be_parsed_is_a_failure_and_no_end_of_the_run(pytester: pytest.Pytester):
    pytester.makeconftest("from tests.conftest import pytest_runtest_makereport")
    pytester.makepyfile(NO_PARSER)
    seen = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    seen.assert_outcomes(failed=1, passed=1)
    seen.stdout.fnmatch_lines("*AssertionError*")


BREAKS_OFF = """
    from tests.conftest import pytest_sessionfinish, pytest_terminal_summary
    from tests.support import attacks

    def pytest_itemcollected(item):
        attacks.record(item)

    def pytest_runtest_logstart(nodeid):
        if nodeid.endswith("test_last"):
            raise ValueError("a part of pytest fails")
"""
ATTACKS = """
    from tests.support.attacks import Attacker, Door, attack

    @attack(Attacker.AGENT, Door.PATHS)
    def test_first():
        assert 1 == 2

    @attack(Attacker.AGENT, Door.PATHS)
    def test_last():
        pass
"""


def test_a_run_that_breaks_off_still_prints_its_table_and_what_failed(pytester: pytest.Pytester):
    pytester.makeconftest(BREAKS_OFF)
    pytester.makepyfile(ATTACKS)
    seen = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-m", "attack")
    assert seen.ret is pytest.ExitCode.INTERNAL_ERROR
    seen.stdout.fnmatch_lines(
        [
            "*agent* 1 * 0 * 1 *",
            "1 cases tried, 0 held, 1 got through.",
            "The run broke off: not every case was tried.",
            "FAILED *test_first*",
        ]
    )
