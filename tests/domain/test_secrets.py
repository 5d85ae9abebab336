"""Secrets in the lines that a change adds: real shapes are found, placeholders and ordinary code are not."""

from __future__ import annotations

import random
import string

import pytest

from legion.domain.review.additions import SecretFound, secrets_in
from legion.domain.review.diffs import DiffLine, FileDiff, Hunk

DRAW = random.Random(7)


def drawn(count: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(DRAW.choice(letters) for _ in range(count))


def found_in(*lines: str, path: str = "app.py") -> tuple[SecretFound, ...]:
    added = tuple(DiffLine(number=number, text=line) for number, line in enumerate(lines, start=1))
    return secrets_in([FileDiff(path=path, hunks=(Hunk(removed=(), added=added, text=""),))])


SECRETS = {
    "private-key": "-----BEGIN RSA PRIVATE" + " KEY-----",
    "ssh-key": "-----BEGIN OPENSSH PRIVATE" + " KEY-----",
    "aws": "key = AKIA" + drawn(16, string.ascii_uppercase),
    "github": "ghp" + "_" + drawn(36),
    "fine-grained": "github" + "_pat_" + drawn(82),
    "gitlab": "glpat" + "-" + drawn(20),
    "slack": "xoxb" + "-" + drawn(40),
    "anthropic": "sk-ant" + "-api03-" + drawn(60),
    "openai": "sk-" + "proj-" + drawn(48),
    "google": "AIza" + drawn(35),
    "stripe": "sk" + "_live_" + drawn(24),
    "npm": "npm" + "_" + drawn(36),
    "pypi": "pypi" + "-" + drawn(80),
    "run": "ANTHROPIC_AUTH_TOKEN=legion-" + drawn(43),
    "agent": "LEGION_TOKEN=legion-agent-" + drawn(43),
    "plugin": "legion-plugin-" + drawn(43),
    "jwt": f"eyJ{drawn(20)}.eyJ{drawn(40)}.{drawn(43)}",
    "address": "postgres://shop:" + drawn(12) + "@db/shop",
    "assigned": f"DB_PASSWORD = '{drawn(32)}'",
    "json": f'"apiKey": "{drawn(40)}",',
}


@pytest.mark.parametrize("line", SECRETS.values(), ids=SECRETS.keys())
def test_a_secret_is_found_and_not_repeated(line: str):
    (one,) = found_in("import os", line)
    assert (one.path, one.line) == ("app.py", 2)
    assert line not in one.sentence + repr(one)
    assert len(one.hint) == 4


@pytest.mark.parametrize(
    "line",
    [
        "",
        "token = os.environ['TOKEN']",
        "password = 'correct horse battery staple'",
        "api_key = 'your-key-goes-here-please-replace'",
        "secret = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'",
        "AKIAIOSFODNN7EXAMPLE",
        "postgres://user:password@localhost",
        "postgres://shop:${DB_PASSWORD}@db",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "token_type_names = 'authorization_code_or_client'",
        "-----BEGIN CERTIFICATE-----",
        "sk-short",
    ],
    ids=lambda line: line[:20],
)
def test_ordinary_code_and_placeholders_are_not_secrets(line: str):
    assert found_in(line) == ()


def test_the_same_secret_counts_once_per_file_and_two_are_told_apart():
    one, two = "ghp" + "_" + drawn(36), "ghp" + "_" + drawn(36)
    assert [found.line for found in found_in(one, two, one)] == [1, 2]
    assert len({found.text for found in found_in(one, two)}) == 2
