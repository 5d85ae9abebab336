"""What a check stands on: [setup] on the target, or a tree of its own for a change of what setup reads."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.checks import CheckResult
from legion.jobs.checks import execution
from legion.jobs.checks.prepared_tree import prepared
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import setup
from legion.jobs.workspace.command import Cancelled, CancelToken
from tests.support.attacks import Attacker, Door, attack
from tests.support.board import Board
from tests.support.repository import Repository

REAL = 'real() { test "$(cat value.txt)" = good; }\n'
FORGED = "real() { true; }\n"
SETUP = "mkdir -p env && { test -e env/lib.sh || cp lib.sh env/lib.sh; }; echo x >> env/runs\n"
CONFIG = """\
[setup]
run = "sh setup.sh"
key = ["deps.txt"]
[checks.test]
run = ". ./env/lib.sh; real"
[landing]
checks_at_once = 1
"""
FILES = {"setup.sh": SETUP, "deps.txt": "1\n", "lib.sh": REAL, "value.txt": "good\n", "src/a/code.txt": "a\n"}


class Ground:
    """A project whose changes are commits in its hub: none of them lands unless the test says so."""

    def __init__(self, folder: Path, config: str, files: Mapping[str, str], links: Mapping[str, str]) -> None:
        theirs = Repository(folder / "shop", config)
        for name, target in links.items():
            (theirs.root / name).parent.mkdir(parents=True)
            (theirs.root / name).symlink_to(target)
        theirs.commit("source", dict(files))
        theirs.git("branch", "change")
        self.repository = theirs
        self.board = Board(folder)
        self._changes = 0

    def close(self) -> None:
        self.board.context.launcher.close()
        self.board.close()

    @property
    def project(self) -> ProjectContext:
        return self.board.context.project(1)

    def change(self, files: Mapping[str, str | None], *, on: str = "") -> str:
        """A change of the target, or of another change, that has not landed. None deletes a file."""
        git = self.repository.git
        self._changes += 1
        git("checkout", "--quiet", "-B", f"change-{self._changes}", on or self.project.target)
        for name, text in files.items():
            if text is None:
                git("rm", "--quiet", name)
        self.repository.commit("A change", {name: text for name, text in files.items() if text is not None})
        return self.project.hub.fetch_branch(self.repository.root / ".git", f"change-{self._changes}")

    def land(self, commit: str) -> None:
        project = self.project
        project.hub.move_target(commit, expected=project.target)

    def verdict(self, commit: str) -> CheckResult:
        project = self.project
        return (
            execution.test(self.board.context, project, commit, execution.project_checks(project)).receipts[-1].verdict
        )

    def passes(self, commit: str) -> bool:
        return self.verdict(commit) is CheckResult.GREEN

    def forget_reads(self) -> None:
        """As on a file system that records none, where no outputs are kept either."""
        shutil.rmtree(self.project.folder / "kept", ignore_errors=True)
        record = self.project.folder / "check-setup-0.json"
        record.write_text(json.dumps({**json.loads(record.read_text()), "read": None}))

    def setups(self) -> int:
        return len(list(self.board.data.runs.glob("setup-*")))


Make = Callable[..., Ground]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Ground] = []

    def ground(
        config: str = CONFIG, files: Mapping[str, str] = FILES, links: Mapping[str, str] | None = None
    ) -> Ground:
        made.append(Ground(tmp_path, config, files, links or {}))
        return made[-1]

    yield ground
    for one in made:
        one.close()


FORGE = f"printf '{FORGED.strip()}' > env/lib.sh\n"


@attack(Attacker.AGENT, Door.CHECKS)
@pytest.mark.parametrize("order", ["before", "after", "between", "batch"])
def test_setup_of_a_change_that_does_not_land_forges_no_check(make: Make, order: str):
    ground = make()
    bad = ground.change({"value.txt": "bad\n"})
    evil = ground.change({"setup.sh": SETUP + FORGE, "deps.txt": "2\n"})
    if order in ("before", "between"):
        assert not ground.passes(bad)
    assert ground.passes(evil)
    if order == "batch":
        assert ground.passes(ground.change({"other.txt": "x\n"}, on=evil))
    assert not ground.passes(ground.change({"value.txt": "worse\n"}))
    if order == "between":
        assert ground.passes(evil)
    assert not ground.passes(bad)
    assert ground.passes(ground.project.target)


SITE = "open('env/site/sitecustomize.py', 'w').write('import os; os._exit(0)'); os.system('sh setup.sh')"
POSTINSTALL = "import json, os; os.system(json.load(open('package.json'))['scripts']['postinstall'])"


@attack(Attacker.REPOSITORY, Door.CHECKS)
@pytest.mark.parametrize(
    ("run", "files", "evil"),
    [
        pytest.param(
            "python3 build.py",
            {"build.py": "import backend.make", "backend/make.py": "import os; os.system('sh setup.sh')"},
            {"backend/make.py": "open('env/lib.sh', 'w').write('real() { true; }')"},
            id="build backend in the tree",
        ),
        pytest.param(
            "mkdir -p env; python3 install.py",
            {"install.py": POSTINSTALL, "package.json": '{"scripts": {"postinstall": "cp lib.sh env"}}'},
            {"package.json": '{"scripts": {"postinstall": "echo \'real() { true; }\' > env/lib.sh"}}'},
            id="script in package.json",
        ),
        pytest.param(
            "mkdir -p env/site; cp lib.sh env; PYTHONPATH=env/site python3 -c pass",
            {},
            {"setup.cfg": "x", "lib.sh": "touch value.txt; real() { true; }\n"},
            id="library that is copied",
        ),
        pytest.param(
            "PYTHONPATH=env/site python3 -m make",
            {"make.py": "import os; os.system('sh setup.sh; mkdir -p env/site')"},
            {"make.py": "import os; os.makedirs('env/site'); " + SITE},
            id="sitecustomize left in the environment",
        ),
        pytest.param(
            "sh run/link.sh", {"run/real.sh": "sh setup.sh"}, {"run/real.sh": FORGE}, id="script behind a link"
        ),
    ],
)
def test_no_way_of_setup_leaves_anything_of_a_change(
    make: Make, run: str, files: Mapping[str, str], evil: Mapping[str, str]
):
    links = {"run/link.sh": "real.sh"} if "run/real.sh" in files else {}
    ground = make(CONFIG.replace("sh setup.sh", run), {**FILES, **files}, links)
    assert ground.passes(ground.project.target)
    ground.verdict(ground.change({**evil, "deps.txt": "2\n"}))
    assert not ground.passes(ground.change({"value.txt": "bad\n"}))
    assert ground.passes(ground.project.target)


@attack(Attacker.AGENT, Door.CHECKS)
def test_a_tree_that_a_crash_left_is_not_used(make: Make):
    """The daemon was killed while a change of setup was checked: its tree and record are still there."""
    ground = make()
    assert ground.passes(ground.project.target)
    folder = ground.project.folder
    shutil.copytree(folder / "trees/0", folder / "trees/0-own")
    (folder / "trees/0-own/env/lib.sh").write_text(FORGED)
    for name in ("check-setup-{}.json", "check-trees/{}.json"):
        shutil.copy(folder / name.format("0"), folder / name.format("0-own"))
    assert not ground.passes(ground.change({"setup.sh": SETUP + "# new\n", "value.txt": "bad\n"}))
    assert not (folder / "trees/0-own").exists()


@pytest.mark.parametrize("left", ["trees/0-own/file", "check-setup-0-own.json"])
def test_a_start_removes_what_a_kill_left_of_a_tree_for_one_commit(make: Make, left: str):
    ground = make()
    place = ground.project.folder / left
    place.parent.mkdir(exist_ok=True)
    place.write_text("{}")
    ground.board.context.trees.forget(1)
    assert not list(ground.project.folder.rglob("*-own*"))


@pytest.mark.parametrize("how", ["all is read", "reads are not known"])
def test_each_landing_costs_one_setup_where_setup_reads_what_changes(make: Make, how: str):
    script = "mkdir -p env && cp lib.sh env/lib.sh; cat * */*/* > env/all || true\n"
    ground = make(files={**FILES, "setup.sh": script})
    assert ground.passes(ground.project.target)
    if how == "reads are not known":
        ground.forget_reads()
    for number in range(3):
        before = ground.setups()
        change = ground.change({"src/a/code.txt": f"{number}\n", "setup.sh": script, "legion.toml": CONFIG})
        assert ground.passes(change)
        ground.land(change)
        assert ground.setups() == before + 1


class WatchedToken(CancelToken):
    """Says when a command runs that it cancels."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = threading.Event()

    @contextmanager
    def running(self, run_dir: Path) -> Iterator[None]:
        with super().running(run_dir):
            self.runs.set()
            yield


def test_setup_on_a_change_ends_when_its_result_is_not_needed_any_more(make: Make):
    ground = make()
    project, context = ground.project, ground.board.context
    assert ground.passes(project.target)
    change = ground.change({"setup.sh": "sleep 1000\n"})
    token = WatchedToken()
    with ThreadPoolExecutor() as threads:
        tested = threads.submit(
            execution.test_unless_cancelled, context, project, change, execution.project_checks(project), token
        )
        assert token.runs.wait(60)
        token.cancel()
        assert isinstance(tested.exception(60), Cancelled)
    assert not list(project.folder.rglob("*-own*"))


def test_outputs_that_a_check_destroyed_are_made_again_on_what_serves_its_commit(make: Make):
    """Meanwhile a change of setup has landed, and the commit was made before that."""
    ground = make()
    project, context = ground.project, ground.board.context
    assert ground.passes(project.target)
    old = ground.change({"value.txt": "better\n"})
    with prepared(context, project, 0, old, CancelToken()) as ready:
        ground.land(ground.change({"setup.sh": "mkdir env && cp value.txt env/lib.sh\n"}))
        place, _ = replace(ready, made_on=ground.project.target).show()
        assert (place / "env/lib.sh").read_text() == REAL
        shutil.rmtree(place / "env")
        place, _ = replace(ready, made_on=ground.project.target).show()
        assert (place / "env/lib.sh").read_text() == REAL, "setup of its own commit"
    assert ground.passes(ground.change({"src/a/code.txt": "b\n", "setup.sh": SETUP}))


@attack(Attacker.AGENT, Door.CHECKS)
def test_a_script_that_setup_runs_is_tested_by_the_change_that_breaks_it(make: Make):
    """Its key is unchanged."""
    ground = make()
    assert ground.passes(ground.project.target)
    assert not ground.passes(ground.change({"setup.sh": "true\n"}))
    assert not ground.passes(ground.change({"lib.sh": "real() { false; }\n"}))
    assert ground.passes(ground.change({"value.txt": "good\n", "more.txt": "x\n"}))


def test_changes_of_what_setup_does_not_read_use_what_it_made_on_the_target(make: Make):
    ground = make()
    assert ground.passes(ground.project.target)
    assert ground.setups() == 1
    assert not ground.passes(ground.change({"value.txt": "bad\n"}))
    assert ground.passes(ground.change({"src/a/code.txt": "b\n", "src/a/more.txt": "c\n", "src/b/new.txt": "d\n"}))
    ground.land(ground.change({"src/a/code.txt": "c\n"}))
    assert ground.passes(ground.change({"src/a/code.txt": "d\n"}))
    assert ground.setups() == 1


def test_committing_legion_toml_needs_no_second_setup(make: Make):
    """`legion init` writes it and asks for that; setup ran before, in a tree without it."""
    ground = make()
    ground.land(ground.change({"legion.toml": None}))
    assert ground.passes(ground.project.target)
    assert ground.setups() == 1
    ground.land(ground.change({"legion.toml": CONFIG}))
    assert ground.passes(ground.project.target)
    assert ground.setups() == 1


def test_a_landed_change_of_what_setup_reads_makes_it_run_once_from_nothing(make: Make):
    ground = make()
    assert ground.passes(ground.project.target)
    ground.land(ground.change({"lib.sh": REAL + "# newer\n"}))
    newer = {"legion.toml": CONFIG, "setup.sh": SETUP}
    assert ground.passes(ground.change({"src/a/code.txt": "b\n", **newer}))
    assert ground.passes(ground.change({"src/a/code.txt": "c\n", **newer}))
    assert ground.setups() == 2
    (tree,) = (ground.project.folder / "trees").glob("[0-9]*")
    assert (tree / "env/lib.sh").read_text() == REAL + "# newer\n"
    assert (tree / "env/runs").read_text() == "x\n"


def test_a_change_that_fixes_a_broken_setup_is_green(make: Make):
    ground = make(files={**FILES, "setup.sh": "exit 3\n"})
    assert ground.verdict(ground.project.target) is CheckResult.SETUP
    assert ground.passes(ground.change({"setup.sh": SETUP}))
    assert ground.verdict(ground.change({"value.txt": "bad\n"})) is CheckResult.SETUP


@attack(Attacker.AGENT, Door.CHECKS)
def test_nothing_of_a_change_of_setup_stays(make: Make):
    """Neither its tree nor its downloads, and no rule that keeps its outputs out of later changes."""
    ground = make()
    ground.passes(ground.project.target)
    stain = 'mkdir -p "$XDG_CACHE_HOME" stain; echo evil | tee "$XDG_CACHE_HOME/evil" "$PIP_CACHE_DIR.evil" stain/x\n'
    assert ground.passes(ground.change({"setup.sh": SETUP + stain, "deps.txt": "2\n"}))
    places = [*ground.project.folder.rglob("*evil*"), *ground.project.folder.rglob("*stain*")]
    assert places == []
    assert "stain" not in (ground.project.hub.path / "info" / "exclude").read_text()


def test_downloads_of_setup_on_the_target_are_there_for_changes_of_it(make: Make):
    ground = make(files={**FILES, "setup.sh": SETUP + 'mkdir "$PIP_CACHE_DIR"\n'})
    assert ground.passes(ground.project.target)
    assert ground.passes(ground.change({"setup.sh": SETUP + 'test -e "$PIP_CACHE_DIR"\n'}))


@attack(Attacker.REPOSITORY, Door.CHECKS)
@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("a new file at the top", {"extra.sh": "x"}),
        ("a new file beside one that was read", {"parts/b.sh": FORGE}),
        ("one of the listed files", {"parts/a.sh": FORGE}),
        ("a listed file that is gone", {"parts/a.sh": None}),
        ("a new folder in a listed one", {"parts/more/b.sh": FORGE}),
    ],
)
def test_what_setup_could_read_gets_a_tree_of_its_own(make: Make, name: str, files: Mapping[str, str | None]):
    script = SETUP + "for one in parts/*.sh; do . ./$one; done\n"
    ground = make(files={**FILES, "setup.sh": script, "parts/a.sh": ":\n"})
    assert ground.passes(ground.project.target)
    before = ground.setups()
    ground.verdict(ground.change(files))
    assert ground.setups() == before + 1
    assert not ground.passes(ground.change({"value.txt": "bad\n"}))
    assert ground.setups() == before + 1


@attack(Attacker.AGENT, Door.CHECKS)
def test_a_check_that_moves_the_folder_of_outputs_forges_no_later_one(make: Make):
    """Outputs are read-only for checks; the folder that holds them is not."""
    config = CONFIG.replace("env/lib.sh", "web/env/lib.sh").replace("sh setup.sh", "mkdir web/env && cp lib.sh web/env")
    config = config.replace('run = ". ./', 'run = "sh hook.sh; . ./')
    ground = make(config, {**FILES, "web/page.txt": "p\n", "hook.sh": ":\n"})
    assert ground.passes(ground.project.target)
    hook = f"mv web gone && mkdir -p web/env && printf '{FORGED.strip()}' > web/env/lib.sh\n"
    ground.verdict(ground.change({"hook.sh": hook}))
    assert not ground.passes(ground.change({"value.txt": "bad\n"}))
    assert ground.passes(ground.project.target)


@attack(Attacker.AGENT, Door.SANDBOX)
@pytest.mark.parametrize("kind", ["relative", "absolute", "inside a folder"])
def test_a_link_among_the_outputs_shows_nothing_of_the_person(
    make: Make, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home = tmp_path / "home"
    home.mkdir()
    (home / "key").write_text("secret\n")
    monkeypatch.setenv("HOME", str(home))
    ground = make(CONFIG.replace("; real", "; real && ! grep -r secret shown/"))
    up = "../" * (len((ground.project.folder / "trees").parts))
    link = str(home) if kind == "absolute" else f"{up}{str(home).lstrip('/')}"
    make_link = f"mkdir shown && ln -s ../{link} shown/in\n" if kind == "inside a folder" else f"ln -s {link} shown\n"
    assert ground.passes(ground.project.target)
    assert ground.passes(ground.change({"setup.sh": SETUP + make_link, "deps.txt": "2\n"}))


@attack(Attacker.AGENT, Door.CHECKS)
@pytest.mark.parametrize("changed", ["setup.sh", "lib.sh", "src/a/code.txt"])
def test_a_warm_tree_serves_a_reviewer_or_a_machine_as_a_check(make: Make, changed: str):
    """They get a tree that waited with what setup made on the target, and show the change in it."""
    ground = make()
    project, context = ground.project, ground.board.context
    target, change = project.target, ground.change({changed: f"{FILES[changed]}# new\n"})

    def prepare(tree: Path) -> None:
        setup.ensure(context, project, tree, shows=target, landed=target)

    project.worktrees.fill(1, target, disk_cap_bytes=1 << 30, prepare=prepare)
    tree = project.worktrees.replant("check-1", change, project.hub.tree_of(change), "legion/check-1", attempt=1)
    (tree / "env" / "old").write_text("of the target")
    setup.ensure(context, project, tree, shows=change)
    assert (tree / "env" / "old").exists() is (changed == "src/a/code.txt")
    assert (tree / "env" / "lib.sh").exists()


def test_where_reads_are_not_known_each_change_gets_a_tree_of_its_own(make: Make):
    ground = make()
    assert ground.passes(ground.project.target)
    ground.forget_reads()
    assert ground.passes(ground.project.target)
    assert ground.setups() == 1
    assert not ground.passes(ground.change({"value.txt": "bad\n"}))
    assert ground.setups() == 2
