"""The folders behind PATH: enough for every tool to run, nothing of the person's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from legion.runner.sandbox import Sandbox
from legion.runner.toolchains import ShowsTooMuch, toolchains
from tests.runner.runs import ENV, Workbench


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with tools and secrets side by side."""
    home = tmp_path / "home/ada"
    for name in (
        *(".pyenv/shims/python", ".pyenv/versions/3.12/bin/python", ".nvm/versions/node/v22/bin/node"),
        *(".cargo/bin/cargo", ".cargo/credentials.toml", ".rustup/toolchains/stable/bin/rustc"),
        *(".local/bin/tool", ".local/lib/python3.12/site.py", ".local/share/private/diary"),
        *(".local/share/uv/python/3.13/bin/python3", ".local/share/uv/credentials/credentials.toml"),
        *(".local/share/pipx/venvs/black/bin/black", ".local/share/pipx/venvs/black/lib/black.py"),
        *(".local/share/claude/versions/2/claude", ".local/share/legion/token", ".config/secret", ".config/nvm/node"),
        *("node22/bin/npm", "node22/lib/npm.js", "node22/notes", "project/.git/HEAD", "project/run.sh", "project/key"),
        *(".ssh/id_ed25519", ".claude/login", ".claude/local/claude", "bin/own", "letters"),
        *("node/node_modules/pnpm/bin/pnpm.cjs", "node/node_modules/pnpm/dist/pnpm.cjs", "node/notes"),
        *("sdk/go/bin/go", "sdk/go/pkg/tool/link", "sdk/go/src/fmt.go"),
    ):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return home


def found(home: Path, *entries: str, named: tuple[Path, ...] = ()) -> set[str]:
    path = os.pathsep.join(str(home / entry) for entry in entries)
    places = toolchains(path, home, named=named, hidden=(home / ".local/share/legion",))
    return {str(place.relative_to(home)) for place in places}


@pytest.mark.parametrize(
    ("entry", "places"),
    [
        (".pyenv/shims", {".pyenv"}),
        (".nvm/versions/node/v22/bin", {".nvm"}),
        (".config/nvm", {".config/nvm"}),
        (".cargo/bin", {".cargo/bin", ".rustup"}),
        (".local/bin", {".local/bin", ".local/lib"}),
        ("node22/bin", {"node22/bin", "node22/lib"}),
        ("sdk/go/bin", {"sdk/go"}),
        ("bin", {"bin"}),
        ("project", {"project"}),
        (".ssh", set()),
        (".claude/local", set()),
        (".local/share/legion", set()),
        (".local/share", set()),
        (".local", set()),
        (".config", set()),
        (".", set()),
        ("..", set()),
        ("missing/bin", set()),
    ],
)
def test_each_folder_of_path_leads_to_its_installation_and_no_further(home: Path, entry: str, places: set[str]):
    assert found(home, entry) == places


@pytest.mark.parametrize(
    ("target", "places"),
    [
        (
            ".local/share/pipx/venvs/black/bin/black",
            {f".local/share/pipx/venvs/black/{part}" for part in ("bin", "lib")},
        ),
        (".local/share/uv/python/3.13/bin/python3", {".local/share/uv/python"}),
        ("node/node_modules/pnpm/bin/pnpm.cjs", {"node/node_modules"}),
        (".local/share/claude/versions/2/claude", {".local/share/claude/versions/2"}),
        (".pyenv/versions/3.12/bin/python", {".pyenv"}),
        ("project/run.sh", {"project/run.sh"}),
        (".ssh/id_ed25519", set()),
        (".claude/login", set()),
        (".local/share/legion/token", set()),
        ("letters", {"letters"}),
        ("nowhere", set()),
    ],
)
def test_a_link_leads_to_what_it_needs(home: Path, target: str, places: set[str]):
    (home / ".local/bin/link").symlink_to(home / target)
    assert found(home, ".local/bin") - {".local/bin", ".local/lib"} == places


def test_links_are_followed_through_virtual_environments(home: Path):
    environment = home / "venv/bin"
    environment.mkdir(parents=True)
    (environment / "python").symlink_to(home / ".pyenv/versions/3.12/bin/python")
    (home / "venv/pyvenv.cfg").write_text("x")
    (home / ".local/bin/tool2").symlink_to(environment / "python3")
    (environment / "python3").symlink_to("python")
    assert found(home, "venv/bin") == {"venv/bin", "venv/pyvenv.cfg", ".pyenv"}


def test_the_person_may_name_more_but_not_everything(home: Path):
    assert found(home, named=(home / "node22", home / "missing")) == {"node22"}
    for name in ("", ".ssh", ".local", ".config", ".claude", ".local/share/legion", ".local/share"):
        with pytest.raises(ShowsTooMuch, match="narrower"):
            found(home, named=(home / name,))


def test_a_home_folder_behind_a_link_works_under_both_its_names(home: Path, tmp_path: Path):
    link = tmp_path / "me"
    link.symlink_to(home)
    assert set(toolchains(str(link / ".pyenv/shims"), link)) == {link / ".pyenv", home / ".pyenv"}


def test_folders_of_the_system_and_strange_entries_add_nothing(home: Path):
    assert toolchains("/usr/bin:/bin:/usr/sbin::relative:.:/etc:/tmp:/proc", home) == ()


def test_a_tool_from_the_home_folder_runs_inside_and_sees_no_secret(sandboxed: Workbench, home: Path):
    tool = home / ".pyenv/shims/python"
    tool.write_text(f"#!/bin/sh\ncat {home}/.ssh/id_ed25519 || echo no key; ls -A {home}")
    tool.chmod(0o755)
    path = f"{home}/.pyenv/shims:{home}/.cargo/bin:/usr/bin:/bin"
    sandbox = Sandbox(home=home, writable=(sandboxed.worktree,), readable=toolchains(path, home))
    run = sandboxed.prepare(["python"], sandbox=sandbox)
    spec = run / "spec.json"
    spec.write_text(spec.read_text().replace(ENV["PATH"], path))
    sandboxed.launcher.start(run)
    assert sandboxed.result(run).succeeded
    assert sandboxed.output(run).splitlines()[1:] == ["no key", ".cargo", ".pyenv", ".rustup"]
