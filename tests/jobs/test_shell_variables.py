"""Programs of a project find what the person's shell finds, once a command of theirs has reported it."""

from __future__ import annotations

import os
from pathlib import Path

from legion.config.files.project import FILE
from legion.config.files.user import CurrentSettings, UserConfig
from legion.domain.checks import CheckResult
from legion.jobs.checks import sight, trial
from legion.jobs.workspace import sandbox, shell_variables
from legion.jobs.workspace.command import CancelToken
from legion.service.projects import registry
from legion.service.views.doctor import doctor
from legion.wire.projects import AddProject, ShellVariables
from tests.jobs.test_check_setup import Ground, Make, make
from tests.support.attacks import Attacker, Door, attack
from tests.support.repository import Repository

__all__ = ["make"]

CHECK = "[checks.test]\nrun = 'mytool && grep -q CERT $SSL_CERT_FILE && test -z \"$NO_PROXY$http_proxy\"'\n"


def _tool(folder: Path, name: str) -> str:
    folder.mkdir()
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def _report(ground: Ground, place: Path, variables: dict[str, str]) -> list[str]:
    return registry.use_shell(ground.board.context, ShellVariables(path=str(place), variables=variables)).notes


def test_checks_find_the_tools_and_certificates_of_the_shell(make: Make, tmp_path: Path):
    ground = make(CHECK, {"a.txt": "a\n"})
    assert ground.verdict(ground.project.target) is CheckResult.RED
    certificate = tmp_path / "corp.pem"
    certificate.write_text("-----BEGIN CERTIFICATE-----\n")
    variables = {
        "PATH": _tool(tmp_path / "tools", "mytool"),
        "SSL_CERT_FILE": str(certificate),
        "http_proxy": "http://p:1",
    }
    (note,) = _report(ground, ground.repository.root, variables)
    assert note.startswith("Programs of shop get PATH, http_proxy, ")
    assert _report(ground, ground.repository.root, variables) == []
    assert ground.passes(ground.project.target)
    (line,) = [one for one in doctor(ground.board.context, str(ground.repository.root)).findings if "shell" in one.name]
    assert line.detail.startswith("PATH, http_proxy, ")


def test_a_trial_that_lacked_a_tool_is_due_when_the_shell_has_it(make: Make, tmp_path: Path):
    ground = make(CHECK, {"a.txt": "a\n"})
    object.__setattr__(ground.board.context, "settings", CurrentSettings(UserConfig()))
    without, project = {"PATH": os.environ["PATH"]}, ground.project
    _report(ground, ground.repository.root, without)
    trial.run(ground.board.context, project, CancelToken())
    due = []
    for variables in (without, {"PATH": _tool(tmp_path / "tools", "mytool")}):
        _report(ground, ground.repository.root, variables)
        with ground.board.store.read() as tx:
            due.append(sight.is_due(ground.board.context, tx, project))
    assert due == [False, True]


def test_init_guesses_with_the_tools_of_the_shell(make: Make, tmp_path: Path):
    ground = make(CHECK, {"a.txt": "a\n"})
    theirs = Repository(tmp_path / "other", "")
    theirs.git("rm", "--quiet", FILE)
    theirs.commit("pnpm", {"package.json": '{"dependencies": {"a": "1"}}', "pnpm-lock.yaml": "lockfileVersion: 9\n"})
    wanted = AddProject(path=str(theirs.root), dry_run=True)
    assert "pnpm install" not in registry.add(ground.board.context, wanted).setup
    _report(ground, theirs.root, {"PATH": _tool(tmp_path / "tools", "pnpm")})
    assert "pnpm install" in registry.add(ground.board.context, wanted).setup


@attack(Attacker.REPOSITORY, Door.CHECKS)
def test_folders_of_path_in_the_repository_or_its_trees_are_left_out(make: Make, tmp_path: Path):
    """A virtual environment of the checkout would be found by the checks of every tree."""
    ground = make(CHECK, {"a.txt": "a\n"})
    root, worktrees = ground.repository.root, Path(ground.project.record.worktrees)
    (tmp_path / "link").symlink_to(root / "bin")
    (tmp_path / "behind").symlink_to(worktrees)
    (root / "env").symlink_to("/usr")
    inside = f"{root}/.venv/bin:{root.parent}//shop/./bin:/usr/..{root}/bin:node_modules/.bin:{root}/env/bin"
    linked = f"{tmp_path}/link:{tmp_path}/behind/ticket-1/bin:{worktrees}/ticket-1/bin:{ground.board.data.root}/x"
    kept = f"/me/.nvm/v20/bin:{root}-tools/bin:/usr/bin"
    _report(ground, root, {"PATH": f"{inside}:{linked}:{kept}::/usr/bin"})
    got = sandbox.environment(ground.board.context, ground.project, {})
    assert got["PATH"] == kept


def test_a_password_of_a_proxy_is_neither_stored_nor_passed_and_doctor_says_so(make: Make):
    ground = make(CHECK, {"a.txt": "a\n"})
    _report(ground, ground.repository.root, {"HTTPS_PROXY": "http://me:secret@proxy:3128"})
    bridge = sandbox.bridge(ground.board.context, ground.project)
    assert bridge is not None
    assert bridge.upstream.https == "http://proxy:3128"
    assert "proxy:3128" not in str(sandbox.environment(ground.board.context, ground.project, {}))
    assert [place for place in (ground.board.data.root / "shells").iterdir() if "secret" in place.read_text()] == []
    (line,) = [one for one in doctor(ground.board.context, str(ground.repository.root)).findings if "shell" in one.name]
    assert "HTTPS_PROXY without user and password" in line.detail
    assert "sandbox.env" in line.advice


def test_a_file_with_a_private_key_is_no_certificate(tmp_path: Path):
    for name, text in (
        ("key", "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n"),
        ("ssh", "-----BEGIN X-----"),
    ):
        (tmp_path / name).write_text(text)
    names = dict(zip(("SSL_CERT_FILE", "PIP_CERT", "SSL_CERT_DIR"), ("key", "ssh", "."), strict=True))
    assert shell_variables.certificates({name: str(tmp_path / file) for name, file in names.items()}) == ()
