"""[environment] in both files: what is read, what is refused, how placeholders are filled in."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.config.explain import explain
from legion.config.files import project, user
from legion.config.sections.environment import Cache, Copy, PortOutside, fill_in
from legion.domain.errors import BadInput

WORDS = {"tmp": "/tmp/7", "ticket": "7", "attempt": "2", "worktree": "/w/7"}


def test_the_projects_section_is_read():
    text = '[environment]\nports = 2\nenv_file = "web/.env"\nvars = { PORT = "{port+1}", TOKEN = "x" }\nup = "make db"'
    found = project.parse(text, origin="x").environment
    assert (found.ports, found.env_file, found.up, found.down) == (2, "web/.env", "make db", "")
    assert found.lines(range(20, 22), WORDS) == "PORT=21\nTOKEN=x\n"


def test_the_persons_section_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/me")
    text = '[environment]\ncopy = ["my shop: .env.local"]\ncaches = ["PIP_CACHE_DIR=~/.cache/pip"]\ndisk_mb = 0'
    found = user.parse(text, origin="x").environment
    assert found.copy == (Copy("my shop", ".env.local"),)
    assert found.caches == (Cache("PIP_CACHE_DIR", Path("/me/.cache/pip")),)
    assert (found.copies("my shop"), found.copies("shop")) == ((".env.local",), ())


def test_variables_are_one_setting_with_one_origin():
    config = project.parse('[environment]\nenv_file = "a"\nvars = { A = "b" }', origin="x")
    rows = {row.key: row for row in explain(config, "legion.toml", user.DEFAULTS)}
    assert (rows["environment.vars"].value, rows["environment.vars"].origin) == ({"A": "b"}, "legion.toml")
    assert rows["environment.ports"].origin == "default"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ports = 101", "must be a whole number from 0 to 100"),
        ('env_file = "../.env"', "has an empty part, `.` or `..` in it"),
        ('env_file = "/etc/passwd"', "starts with a slash"),
        ('env_file = ".git/config"', "is in git's own folder"),
        ('env_file = "sub/.GIT/config"', "is in git's own folder"),
        ('env_file = "*.env"', "has a wildcard"),
        ('vars = { A = "b" }', "needs `env_file`"),
        ('template = "t"', "needs `env_file`"),
        ('env_file = "e"\nvars = { A = 1 }', "must be a table of names and texts"),
        ('env_file = "e"\nvars = { "A B" = "b" }', "is no name of an environment variable"),
        ('env_file = "e"\nvars = { A = "b\\nC=d" }', "has more than one line"),
        ('env_file = "e"\nvars = { A = "{prot}" }', "is no placeholder"),
        (
            'ports = 2\nenv_file = "e"\nvars = { A = "{port+2}" }',
            "uses {port+2}, but `environment.ports` gives a run only 2",
        ),
        ('ports = 0\nenv_file = "e"\nvars = { A = "{port}" }', "gives a run only 0"),
        ('env = ["HOME"]', "belongs into the person's own settings file"),
        ('copy = ["a: b"]', "belongs into the person's own settings file"),
    ],
)
def test_what_the_projects_section_cannot_say_is_refused(text: str, said: str):
    with pytest.raises(BadInput) as refused:
        project.parse(f"[environment]\n{text}\n", origin="legion.toml")
    assert said in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('copy = [".env"]', "must be written as `project: path`"),
        ('copy = ["shop: ../.env"]', "has an empty part, `.` or `..` in it"),
        ('copy = ["shop: .git/config"]', "is in git's own folder"),
        ('caches = ["~/.cache"]', "must be written as `VARIABLE=/folder`"),
        ('caches = ["A=relative"]', "must be written as `VARIABLE=/folder`"),
        ('caches = ["A=~/"]', "is too much to open to agents"),
        ("port_base = 80", "must be a whole number from 1024"),
    ],
)
def test_what_the_persons_section_cannot_say_is_refused(text: str, said: str):
    with pytest.raises(BadInput) as refused:
        user.parse(f"[environment]\n{text}\n", origin="config.toml")
    assert said in refused.value.message


def test_placeholders_are_filled_in_and_all_else_stays():
    text = "{port} {port+2} {tmp} {ticket}/{attempt} {worktree} ${port} {} {other} {ticket+1} {{ticket}}"
    filled = fill_in(text, range(30, 33), WORDS)
    assert filled == "30 32 /tmp/7 7/2 /w/7 ${port} {} {other} {ticket+1} {7}"
    with pytest.raises(PortOutside, match=r"\{port\+3\}"):
        fill_in("{port+3}", range(30, 33), WORDS)


def test_values_are_quoted_as_a_shell_reads_them():
    config = project.parse("[environment]\nenv_file = 'e'\nvars = { A = \"it's $HOME\" }", origin="x")
    assert config.environment.lines((), WORDS) == "A='it'\"'\"'s $HOME'\n"
