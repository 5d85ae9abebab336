"""The likely cause of a failed command, by what it printed."""

from __future__ import annotations

import pytest

from legion.domain.failure_causes import likely_cause


@pytest.mark.parametrize(
    ("tail", "code", "cause"),
    [
        ("sh: 1: pnpm: not found", 127, "`pnpm` is not on PATH there"),
        ("bash: line 1: uv: command not found", 127, "`uv` is not on PATH there"),
        ("", 127, "a program that it starts is not on PATH"),
        ("sh: 1: ./run: Permission denied", 126, "not executable"),
        ("Error: ENOENT: no such file, open '/t/node_modules/.cache/xo-linter/tsconfig.xo.json'", 1, "only read"),
        ("OSError: [Errno 30] Read-only file system: 'target/debug'", 101, "only read"),
        ("ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED]", 1, "SSL_CERT_FILE"),
        ("invalid peer certificate: UnknownIssuer", 2, "SSL_CERT_FILE"),
        ("407 Proxy Authentication Required", 1, "HTTPS_PROXY and NO_PROXY"),
        ("npm error network getaddrinfo EAI_AGAIN", 1, "no network"),
        ("ModuleNotFoundError: No module named 'yaml'", 1, "[setup]"),
        ("FATAL ERROR: JavaScript heap out of memory", 134, "sandbox.memory_gb"),
        ("", 137, "sandbox.memory_gb"),
        ("...\n[The program was ended because its limit of 600 s had passed]", None, "`timeout`"),
        ("E   assert 1 == 2\n1 failed", 1, ""),
        ("opened node_modules/.cache/x\nE   assert 1 == 2", 1, ""),
    ],
)
def test_the_cause_is_named_where_the_output_points_at_one(tail: str, code: int | None, cause: str):
    assert cause in likely_cause(tail, code) if cause else likely_cause(tail, code) == ""
