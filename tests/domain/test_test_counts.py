"""How many tests ran, from the output of every runner that tells it."""

from __future__ import annotations

import pytest

from legion.domain.review.trial import tests_ran as ran


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ("....\n412 passed in 5.31s\n", 412),
        ("=== 1 failed, 3 passed, 2 skipped, 1 warning in 0.12s ===\n", 4),
        ("\x1b[32m===== \x1b[1m7 passed\x1b[0m\x1b[32m in 62.10s (0:01:02) =====\x1b[0m", 7),
        ("no tests ran in 0.01s\n", 0),
        ("Ran 1 test in 0.000s\n\nOK\n", 1),
        ("Ran 3 tests in 0.1s\n\nOK\nRan 2 tests in 0.1s\n\nOK\n", 5),
        ("Test Suites: 2 passed, 2 total\nTests:       1 skipped, 11 passed, 12 total\n", 12),
        (" Test Files  2 passed (2)\n      Tests  1 failed | 8 passed (9)\n", 9),
        ("# tests 6\n# pass 6\n", 6),
        ("ℹ tests 5\nℹ suites 0\n", 5),
        ("\n  14 passing (20ms)\n  1 pending\n", 14),
        ("\n  9 tests passed\n", 9),
        ("=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/x (0.00s)\n--- FAIL: TestB (0.00s)\n", 2),
        ("test result: ok. 5 passed; 0 failed; 1 ignored\ntest result: ok. 2 passed; 1 failed; 0 ignored\n", 8),
        ("Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s\n", None),
        ("[INFO] Tests run: 12, Failures: 0, Errors: 0, Skipped: 0\n", 12),
        ("20 tests completed, 1 failed\n", 20),
        ("Passed!  - Failed:     0, Passed:     4, Skipped:     0, Total:     4, Duration: 8 ms\n", 4),
        ("10 examples, 0 failures, 1 pending\n", 10),
        ("8 runs, 20 assertions, 0 failures\n", 8),
        ("OK (31 tests, 88 assertions)\n", 31),
        ("100% tests passed, 0 tests failed out of 17\n", 17),
        ("2 doctests, 5 tests, 0 failures\n", 5),
        ("ok  \texample.com/a\t0.01s\n", None),
        ("all is well\n", None),
    ],
)
def test_the_number_of_tests(output: str, count: int | None):
    assert ran(output) == count
