"""A hostile agent through the whole product, as root and as an ordinary user: each attempt fails and is on record."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
import pytest

from legion.system import trees
from legion.wire.mail import AnswerQuestion
from tests.scenarios import hostile_agent
from tests.support.attacks import Attacker, Door, attack
from tests.support.legion import SOURCE, Project, Squad, new
from tests.support.looking import until_seen
from tests.support.repository import Repository
from tests.support.sampling import SEED

SOMEBODY = 65534
SECRET = "the-secret-of-the-person"
AT_THE_BOTTOM = 10_000_000
"""Bytes of a file that lies deep: more than all other plants together."""
CONFIG = """
[setup]
run = "true"
key = ["lock/file.txt"]
[checks.test]
run = "git status; git log -1; git diff HEAD; test -e README.txt"
[agents]
attempts = 2
parallel = 4
"""


def interpreter_for(uid: int) -> list[str]:
    """A Python that runs the daemon as this other user; root's own may lie where only root can read."""
    become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all"]
    # It must be able to start itself once more: root's rights last until the first exec. Compiled libraries must fit.
    script = "import legion, psutil, pydantic_core, os, sys; os.execv(sys.executable, [sys.executable, '-c', ''])"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        trial = [*become, python, "-c", script]
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": libraries()}
        if subprocess.run(trial, env=env, cwd="/", capture_output=True, check=False).returncode == 0:
            return [*become, python]
    pytest.skip(f"user {uid} can read no Python here that has Legion's libraries")


def libraries() -> str:
    return f"{SOURCE}:{sysconfig.get_path('purelib')}"


class Lair:
    """A host with things worth attacking, and a daemon on it, all owned by one user."""

    def __init__(self, root: Path, uid: int) -> None:
        self.root, self.uid = root, uid
        self.home = self._file("home/.ssh/id_ed25519", SECRET).parents[1]
        self.victim = self._file("victim.txt", SECRET)
        self.marks = self._file("marks/.keep", "").parent
        self.repository = Repository(root / "ada", CONFIG)
        self.plants = plants(self.marks, self.home / ".ssh", self.victim)
        prepare(self.repository, self.plants)
        self.squad = Squad(
            root, settings='[protection]\nmode = "off"\n', launch=interpreter_for(uid) if uid != os.getuid() else ()
        )
        self.listeners = [self._listen(str(root / "host.sock")), self._listen(f"\0{root.name}")]
        self.squad.data.prepare()
        self.squad.data.daemon_log.touch()
        for path in (root, *root.rglob("*")):
            os.chown(path, uid, uid, follow_symlinks=False)

    def start(self) -> Project:
        env = {"HOME": str(self.home), "PATH": f"/usr/bin:/bin:{os.environ['PATH']}"}
        self.squad.start({**env, "PYTHONPATH": libraries()} if self.uid != os.getuid() else env)
        return self.squad.adopt(self.repository)

    def facts(self, project: Project, other: int) -> str:
        data = self.squad.data
        assert self.squad.process is not None
        return json.dumps(
            {
                "token": str(data.token),
                "record": str(data.daemon_record),
                "database": str(data.database),
                "runs": str(data.runs),
                "daemon_socket": str(data.socket),
                "daemon_pid": str(self.squad.process.pid),
                "home": str(self.home),
                "home_holds": ".ssh",
                "ssh_key": str(self.home / ".ssh/id_ed25519"),
                "checkout": str(self.repository.root),
                "worktrees": str(project.worktrees),
                "other_worktree": str(project.worktree(other)),
                "hub": str(project.hub),
                "socket": str(self.root / "host.sock"),
                "abstract": self.root.name,
                "marker": f"marker-{self.root.name}",
                "host": socket.gethostname(),
                "ports": " ".join(re.findall(r"127\.0\.0\.1:(\d+)", data.daemon_record.read_text())),
                "forge_mark": str(self.marks / "forge"),
            }
        )

    def sprung(self) -> list[str]:
        """The traps that ran on the host."""
        return sorted(path.name for path in self.marks.iterdir() if path.name != ".keep")

    def close(self) -> None:
        self.squad.close()
        for listener in self.listeners:
            listener.close()

    def _file(self, name: str, content: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def _listen(self, address: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen(8)
        return listener


def prepare(repository: Repository, plants: Iterable[str]) -> None:
    """Give it a file per plant, and an entry for a submodule: a folder in which an agent can put a repository."""
    head = repository.head()
    repository.write({".gitmodules": '[submodule "sub"]\n\tpath = sub\n\turl = ../sub\n'})
    repository.git("add", ".gitmodules")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    repository.git("commit", "-qm", "a submodule")
    repository.write({f"own {name}.txt": "1\n" for name in plants})
    repository.write({"attack.py": Path(hostile_agent.__file__).read_text()})
    repository.write({"docs/page.txt": "page\n", "lock/file.txt": "1\n"})
    repository.git("add", ".", ":!sub")
    repository.git("commit", "-qm", "more")


@pytest.fixture(scope="module", params=["root", "user"])
def lair(request: pytest.FixtureRequest) -> Iterator[tuple[Lair, Project]]:
    if os.getuid() != 0 and request.param == "root":
        pytest.skip("only root can try as root")
    uid = {"root": 0, "user": SOMEBODY}[request.param] if os.getuid() == 0 else os.getuid()
    # Not below pytest's own folder: another user must be able to reach it.
    root = Path(tempfile.mkdtemp(prefix="legion-lair-"))
    root.chmod(0o755)
    place = Lair(root, uid)
    try:
        yield place, place.start()
    finally:
        place.close()
        trees.remove(root)


def living_with(marker: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if marker in " ".join(process.cmdline()):
                found.append(process.pid)
    return found


@attack(Attacker.AGENT, Door.SANDBOX)
def test_a_hostile_agent_gets_nowhere_and_every_attempt_is_on_record(lair: tuple[Lair, Project]):
    place, project = lair
    other = project.dispatch("other", "exit 1", max_attempts=1)
    project.until(other, "failed")
    assert (project.worktree(other) / "README.txt").exists()
    facts = place.facts(project, other)
    ticket = project.dispatch("attack", f"python3 attack.py '{facts}'; touch made-it.txt", max_attempts=1)
    project.until_settled(ticket)
    log = project.log(ticket)
    said = dict(re.findall(r"^(\w+): (.*)$", log, re.MULTILINE))
    assert list(said) == [attempt.__name__ for attempt in hostile_agent.ATTEMPTS], log
    assert [name for name, outcome in said.items() if outcome == "WORKED"] == [], log
    assert project.state(ticket) == "done"
    assert (living_with(f"marker-{place.root.name}"), place.sprung()) == ([], [])
    assert not (project.worktrees / "planted").exists()
    assert SECRET not in log


def section_of(key: str) -> str:
    """The head of a key's section in a config file of git."""
    section, _, name = key.rpartition(".")[0].partition(".")
    return f'[{section} "{name}"]' if name else f"[{section}]"


def evil_repository(mark: Path, folder: str) -> str:
    """Shell that makes `folder` a git directory in which everything that git could run is a trap."""
    trap = f"touch {mark}; cat"
    keys = {
        **dict.fromkeys(("core.fsmonitor", "core.sshCommand", "core.editor", "core.pager", "core.askPass"), trap),
        **dict.fromkeys(("gpg.program", "diff.external", "uploadpack.packObjectsHook"), trap),
        **dict.fromkeys(("filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv"), trap),
        **dict.fromkeys(("diff.evil.command", "merge.evil.driver"), trap),
        **dict.fromkeys(("credential.helper", "alias.status", "submodule.sub.update"), f"!{trap}"),
        "core.hooksPath": f"{folder}/hooks",
    }
    settings = "".join(f'{section_of(key)}\n\t{key.rpartition(".")[2]} = "{value}"\n' for key, value in keys.items())
    hooks = "pre-commit post-checkout post-index-change reference-transaction post-merge fsmonitor-watchman"
    return "\n".join(
        [
            f"git init -q --bare {folder} 2>/dev/null; mkdir -p {folder}/hooks {folder}/info",
            f"for hook in {hooks}; do printf '#!/bin/sh\\ntouch {mark}\\n' > {folder}/hooks/$hook; done",
            f"chmod +x {folder}/hooks/*",
            f"echo '* filter=evil diff=evil merge=evil' > {folder}/info/attributes",
            f"cat >> {folder}/config <<'END'\n{settings}END",
            f"git --git-dir={folder} config core.bare false",
        ]
    )


# Not a filter for all files: it lands here, and from then on no file of any ticket could be stored.
ATTRIBUTES = (
    "printf '* diff=evil merge=evil\\nplanted* filter=evil\\n' > .gitattributes; echo x > planted-$LEGION_TICKET.txt"
)


DEEP = f"""
import os
for name in ["d"] * 1200 + ["d" * 100] * 30: os.mkdir(name); os.chdir(name)
open("bottom", "wb").write(bytes({AT_THE_BOTTOM}))
"""
"""Deeper than a recursion of Python may go, and longer than a path may be."""


def plants(marks: Path, secret: Path, victim: Path) -> dict[str, str]:
    """What an agent may leave behind for our git, by name; `$own` is a tracked file that nobody else changes."""

    def evil(name: str, folder: str) -> str:
        return evil_repository(marks / name, folder)

    return {
        "config": f"{evil('config', '.git')}; {ATTRIBUTES}; rm -f .git/index; echo x >> $own",
        "commits": f"echo x >> $own; git commit -qam one; {evil('commits', '.git')}; echo two >> $own",
        "file": f"{evil('file', 'f.git')}; rm -rf .git; echo 'gitdir: f.git' > .git; {ATTRIBUTES}; echo x >> $own",
        "link": f"{evil('link', 'link.git')}; rm -rf .git; ln -s link.git .git; {ATTRIBUTES}; echo x >> $own",
        "common": f'{evil("common", "common.git")}; echo "$PWD/common.git" > .git/commondir; echo x >> $own',
        "alternates": f"echo {secret} > .git/objects/info/alternates; echo x >> $own",
        "nothing": "rm -rf .git; echo x >> $own",
        "submodule": f"""
            mkdir -p sub; cd sub; git init -q; echo a > a.txt; {ATTRIBUTES}; git add -A; git commit -qm x
            echo b > a.txt; {evil("submodule", ".git")}; cd ..; echo x >> $own
        """,
        "nested": f"""
            mkdir -p nest; cd nest; git init -q; echo a > a.txt; {ATTRIBUTES}; git add -A; git commit -qm x
            echo b > a.txt; {evil("nested", ".git")}; cd ..; echo x >> $own
        """,
        "linked folder": f"rm -r docs; ln -s {secret} docs; rm -r lock; ln -s {secret} lock",
        "linked files": f"ln -sf {victim} .git/index; ln -sf {victim} .git/HEAD; ln -sf {victim} $own",
        "odd names": f"""
            touch -- -rf '$(touch {marks}/odd)' ';touch x' 'a
b' '"quoted"' ' ' 'é' ':(top)x' '*'
        """,
        "pipes": "rm $own; mkfifo $own; mkfifo pipe; touch instead.txt",
        "deep": f"python3 -c '{DEEP}'; echo x >> $own",
        "shut": "mkdir shut; echo x > shut/file; chmod 000 shut; echo x >> $own; chmod 555 .",
    }


def trash_of(project: Project) -> int:
    return project.squad.client.worktrees(project.cwd).trash_bytes


def in_shell(name: str, deed: str) -> str:
    return f"own='own {name}.txt'\n" + deed.replace("$own", '"$own"')


def let_links_pass(project: Project, *ids: int) -> None:
    """Be the person who lets links out of the repository pass: they must lead nobody astray either."""
    project.until_settled(*ids)
    for one in project.squad.client.inbox().questions:
        assert "links lead out of the repository" in one.words
        project.squad.client.answer(one.id, AnswerQuestion(allowed=True))
    project.until_settled(*ids)


@attack(Attacker.AGENT, Door.TREES)
@pytest.mark.parametrize("share", ["half", pytest.param("all", marks=pytest.mark.soak)])
def test_nothing_that_an_agent_plants_ever_runs_and_its_change_lands_all_the_same(
    lair: tuple[Lair, Project], share: str
):
    """`make test` tries each plant as root or as the user, `make soak` as both."""
    place, project = lair
    drawn = set(random.Random(SEED).sample(list(place.plants), len(place.plants) // 2))
    mine = {
        name: deed
        for name, deed in place.plants.items()
        if share == "all" or os.getuid() != 0 or (name in drawn) == (place.uid == 0)
    }
    # Each goes through a second attempt too, so that our git and setup meet what the first one planted.
    again = 'chmod 755 . && [ $LEGION_ATTEMPT -gt 1 ] && { touch "again $LEGION_TICKET.txt"; exit; }'
    ids = project.dispatch_all([new(name, f"{again}\n{in_shell(name, deed)}\nexit 1") for name, deed in mine.items()])
    let_links_pass(project, *ids)
    pages = {name: project.ticket(ticket) for name, ticket in zip(mine, ids, strict=True)}
    assert place.sprung() == []
    assert {name: page.ticket.reason for name, page in pages.items() if page.ticket.state != "done"} == {}
    assert place.victim.read_text() == SECRET
    if "pipes" in mine:
        assert "pipe (a named pipe)" in (pages["pipes"].runs[-1].detail or "")
    if "deep" in mine:
        assert "(a path that is too long)" in (pages["deep"].runs[-1].detail or "")
        until_seen(project.squad, lambda: trash_of(project) > AT_THE_BOTTOM, "the deep file in the trash")
    words = ["git", f"--git-dir={project.hub}", "grep", "-l", SECRET, "refs/legion/target"]
    assert subprocess.run(words, capture_output=True, check=False).stdout == b""
    project.hub_git("fsck", "--strict", "--full")


@pytest.mark.parametrize("name", ["config", "file", "link", "submodule", "nested"])
def test_the_same_plant_does_its_harm_to_a_git_that_trusts_it(name: str, tmp_path: Path):
    marks = tmp_path / "marks"
    marks.mkdir()
    repository = Repository(tmp_path / "ada")
    deed = plants(marks, tmp_path, tmp_path)[name]
    prepare(repository, [name])
    subprocess.run(["sh", "-c", in_shell(name, deed)], cwd=repository.root, capture_output=True, check=False)
    assert list(marks.iterdir()) == []
    for words in (["add", "-A"], ["status"], ["-C", "nest", "status"]):
        repository.git(*words, check=False)
    assert [path.name for path in marks.iterdir()] == [name]
