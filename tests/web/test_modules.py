"""The page's modules that draw nothing, under the test runner of the Node that Playwright brings along."""

from __future__ import annotations

import subprocess
from pathlib import Path

import playwright

NODE = Path(playwright.__file__).parent / "driver/node"
TESTS = Path(__file__).parent / "modules"


def test_the_modules_do_what_their_tests_say():
    files = sorted(TESTS.glob("*.test.js"))
    assert files
    done = subprocess.run([NODE, "--test", "--test-reporter=dot", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
