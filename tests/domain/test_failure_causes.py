"""The likely cause of a failed command, by what it printed."""

from __future__ import annotations

import pytest

from legion.domain.failure_causes import likely_cause, telling_line


@pytest.mark.parametrize(
    ("tail", "code", "cause"),
    [
        ("sh: 1: pnpm: not found", 127, "`pnpm` is not on PATH there"),
        ("bash: line 1: uv: command not found", 127, "`uv` is not on PATH there"),
        ("", 127, "a program that it starts is not on PATH"),
        (
            "make: mytool: No such file or directory\nmake: *** [Makefile:2: test] Error 127",
            2,
            "`mytool` is not on PATH",
        ),
        ("sh: 1: jest: not found\nnpm error code 127", 1, "`jest` is not on PATH there"),
        ("sh: 1: ./run: Permission denied", 126, "not executable"),
        ("Error: ENOENT: no such file, open '/t/node_modules/.cache/xo-linter/tsconfig.xo.json'", 1, "only read"),
        ("OSError: [Errno 30] Read-only file system: 'target/debug'", 101, "only read"),
        ("ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED]", 1, "SSL_CERT_FILE"),
        ("invalid peer certificate: UnknownIssuer", 2, "SSL_CERT_FILE"),
        ("ProxyError\n[The sandbox refused index.example.org: it is in no list]", 1, "`sandbox.allow`"),
        ("no module\n[The sandbox refused index.example.org: it is in no list]", 1, "let it reach index.example.org"),
        ("No space left on device\n[The sandbox refused index.example.org: it is in no list]", 1, "disk"),
        ("407 Proxy Authentication Required", 1, "HTTPS_PROXY and NO_PROXY"),
        ("npm error network getaddrinfo EAI_AGAIN", 1, "no network"),
        ("ModuleNotFoundError: No module named 'yaml'", 1, "the module `yaml`: add it to what [setup]"),
        ("/t/.venv/bin/python: No module named pytest", 1, "the module `pytest`: add it"),
        ("PytestConfigWarning: Failed to import filter module 'trio': ignore: trio.X", None, "the module `trio`"),
        ("Error: Cannot find module '@x/y/z'", 1, "the module `@x/y/z`"),
        ("Error: Cannot find module 'yaml'", 1, "[setup]"),
        ("Error: Cannot find module '/t/bin/build'", 1, "left out of git"),
        ("FATAL ERROR: JavaScript heap out of memory", 134, "sandbox.memory_gb"),
        ("", 137, "sandbox.memory_gb"),
        ("...\n[The program was ended because its limit of 600 s had passed]", None, "`timeout`"),
        ("E   assert 1 == 2\n1 failed", 1, ""),
        ("opened node_modules/.cache/x\nE   assert 1 == 2", 1, ""),
    ],
)
def test_the_cause_is_named_where_the_output_points_at_one(tail: str, code: int | None, cause: str):
    assert cause in likely_cause(tail, code) if cause else likely_cause(tail, code) == ""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("", "nothing"),
        ("all is well\n1 failed, 2 passed", "1 failed, 2 passed"),
        (
            "Error: Cannot find module 'x'\n    at f (/a/b.js:1:2)\n}\n\nNode.js v24.19.0",
            "Error: Cannot find module 'x'",
        ),
        ("Warning: Could not find any test files: t.js\nNothing to do", "Warning: Could not find any test files: t.js"),
        ("npm error code 1\nnpm error 404 Not Found: x\nnpm error A log of this run: y", "npm error 404 Not Found: x"),
        (
            "E   ModuleNotFoundError: No module named 'a'\n1 error in 0.1s",
            "E   ModuleNotFoundError: No module named 'a'",
        ),
        ("a.c:1: error: no\nmake: *** [Makefile:2: test] Error 1", "a.c:1: error: no"),
        ("ProxyError\n[The sandbox refused a.b: it is no name]", "[The sandbox refused a.b: it is no name]"),
        ("only words\nlast words", "last words"),
    ],
)
def test_the_line_that_says_most_is_found(words: str, line: str):
    assert telling_line(words) == line
