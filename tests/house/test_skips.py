"""In CI only tests that the machine cannot play are skipped; a test whose program was not installed fails."""

from __future__ import annotations

import pytest

from tests.support import skips
from tests.support.codebase import python_files, text_of

pytest_plugins = ["pytester"]

TWO = """
import pytest

def test_browser():
    pytest.skip("Chromium is not installed: the page was not tried in a browser.")

@pytest.mark.skipif(True, reason="npm is not installed")
def test_npm():
    pass
"""


@pytest.mark.parametrize(
    ("ci", "counts"), [("true", {"failed": 1, "skipped": 1}), ("", {"skipped": 2})], ids=["ci", "elsewhere"]
)
def test_a_missing_installation_fails_in_ci_and_is_skipped_elsewhere(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, ci: str, counts: dict[str, int]
):
    monkeypatch.setenv("CI", ci)
    pytester.makeconftest("from tests.conftest import pytest_runtest_makereport")
    pytester.makepyfile(TWO)
    pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist").assert_outcomes(**counts)


@pytest.mark.parametrize("part", skips.ALLOWED)
def test_each_allowed_reason_is_one_that_a_test_gives(part: str):
    files = [file for file in python_files("tests") if file.name not in ("skips.py", "test_skips.py")]
    assert any(part in text_of(file) for file in files)
