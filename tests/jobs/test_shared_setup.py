"""What trees of a project share: downloads of package managers, and outputs of [setup] that work in any folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.domain.checks import Check
from legion.jobs.checks import execution
from legion.jobs.checks.prepared_tree import prepared
from legion.jobs.workspace import environment
from legion.jobs.workspace.command import CancelToken
from legion.store.work import runs
from tests.jobs.test_check_setup import FILES, SETUP, Ground, Make, make
from tests.support.attacks import Attacker, Door, attack

__all__ = ["make"]

COUNTS = """\
[checks.test]
run = "sh check.sh"
[landing]
checks_at_once = 1
"""


CRATES = "cargo/registry/cache"


def counts(lines: int) -> dict[str, str]:
    script = (
        f'p="$CARGO_HOME/registry/cache"; mkdir -p "$p" && cd "$p" && echo x >> got && test $(wc -l < got) = {lines}'
    )
    return {"check.sh": script}


@attack(Attacker.AGENT, Door.CHECKS)
def test_checks_read_what_a_check_of_the_target_downloaded_and_leave_nothing(make: Make):
    ground = make(COUNTS, counts(1))
    assert ground.passes(ground.project.target)
    assert ground.passes(ground.change(counts(2)))
    assert ground.passes(ground.change({**counts(2), "more.txt": "x\n"}))
    assert (ground.project.cache / CRATES / "got").read_text() == "x\n"


def test_an_acceptance_leaves_nothing_that_agents_could_read(make: Make, tmp_path: Path):
    ground = make(COUNTS, counts(1))
    assert ground.passes(ground.project.target)
    (tmp_path / "held").mkdir()
    acceptance = Check(
        name="held", command="held", runs='mkdir -p "$CARGO_HOME/registry/cache/answers"', folder=str(tmp_path / "held")
    )
    wanted = execution.WantedCheck(check=acceptance)
    assert execution.test(ground.board.context, ground.project, ground.project.target, [wanted]).green
    assert not (ground.project.cache / CRATES / "answers").exists()


@attack(Attacker.AGENT, Door.CHECKS)
@pytest.mark.parametrize("place", ["registry/cache/evil", "config.toml"])
def test_a_proof_of_a_ticket_leaves_nothing_in_the_cache(make: Make, place: str):
    """An agent writes it, also where it runs on the target, as that of a checkpoint does."""
    ground = make(f'[checks.test]\nrun = "test ! -e $CARGO_HOME/{place}"\n', {"a.txt": "a\n"})
    wanted = execution.proofs(7, [f"mkdir -p $CARGO_HOME/registry/cache; echo evil > $CARGO_HOME/{place}; true"])
    bare = [execution.WantedCheck(check=one.check) for one in wanted]
    assert execution.test(ground.board.context, ground.project, ground.project.target, bare).green
    assert ground.passes(ground.change({"a.txt": "b\n"}))


SETTINGS = ("cargo/config.toml", "cargo/bin/x", "gradle/init.d/x", "npm/_npx/x", "poetry/virtualenvs/x", ".npmrc")
DOWNLOADS = (f"{CRATES}/x", "gradle/caches/modules-2/x", "npm/_cacache/x", "pip/x", "go/cache/x", "maven/x")


@attack(Attacker.REPOSITORY, Door.CHECKS)
def test_only_downloads_are_kept_and_no_settings_or_programs_beside_them(make: Make):
    files = " ".join(f"$XDG_CACHE_HOME/{path}" for path in (*SETTINGS, *DOWNLOADS))
    link = "ln -s /etc $XDG_CACHE_HOME/uv; mkdir $XDG_CACHE_HOME/deno; ln -s /etc $XDG_CACHE_HOME/deno/npm"
    run = f"for f in {files}; do mkdir -p $(dirname $f); touch $f; done; {link}"
    ground = make(f"[setup]\nrun = '''{run}'''\n[checks.test]\nrun = 'true'\n", {"a.txt": "a\n"})
    assert ground.passes(ground.project.target)
    left = [path for path in ground.project.cache.rglob("*") if not path.is_dir() or path.is_symlink()]
    assert sorted(str(path.relative_to(ground.project.cache)) for path in left) == sorted(DOWNLOADS)


@pytest.mark.parametrize("end", ["exit 1", "sleep 60"])
def test_a_setup_that_does_not_succeed_keeps_no_download(make: Make, end: str):
    run = f"mkdir -p $PIP_CACHE_DIR; echo half > $PIP_CACHE_DIR/wheel; {end}"
    ground = make(f"[setup]\nrun = '{run}'\ntimeout = 1\n[checks.test]\nrun = 'true'\n", {"a.txt": "a\n"})
    assert not ground.passes(ground.project.target)
    assert not (ground.project.cache / "pip").exists()


def test_an_agent_builds_with_a_copy_of_the_downloads(make: Make):
    script = f"mkdir -p $XDG_CACHE_HOME/{CRATES} $PIP_CACHE_DIR; touch $XDG_CACHE_HOME/{CRATES}/got"
    ground = make(f"[setup]\nrun = '{script}'\n[checks.test]\nrun = 'true'\n", {"a.txt": "a\n"})
    assert ground.passes(ground.project.target)
    context = ground.board.context
    ground.board.put(1)
    with context.store.write() as tx:
        run = runs.start(tx, 1, 1)
    got = environment.prepare(context, ground.project, run, ground.repository.root)
    home = Path(got.env["CARGO_HOME"])
    assert any(home.is_relative_to(place) for place in got.writable)
    assert ("PIP_CACHE_DIR" in got.env, (home.parent / "pip").exists()) == (False, False)
    (home / "registry/cache/got").write_text("mine\n")
    assert (ground.project.cache / CRATES / "got").read_text() == ""


def _second_tree(ground: Ground) -> Path:
    with prepared(ground.board.context, ground.project, 1, ground.project.target, CancelToken()) as ready:
        return ready.show()[0]


def test_a_second_tree_gets_a_copy_of_what_setup_made(make: Make):
    ground = make(files={**FILES, "setup.sh": SETUP + "ln -s lib.sh env/link; ln -s ../value.txt env/out\n"})
    assert ground.passes(ground.project.target)
    tree = _second_tree(ground)
    assert ground.setups() == 1
    assert ((tree / "env/lib.sh").read_text(), (tree / "env/link").readlink()) == (FILES["lib.sh"], Path("lib.sh"))
    ground.land(ground.change({"lib.sh": FILES["lib.sh"] + "# newer\n"}))
    assert (_second_tree(ground) / "env/lib.sh").read_text().endswith("# newer\n")
    assert ground.setups() == 2


@pytest.mark.parametrize("names", ["pwd > env/place", 'ln -s "$PWD/value.txt" env/place', "echo changed >> value.txt"])
def test_setup_runs_in_each_tree_where_what_it_makes_belongs_to_that_tree(make: Make, names: str):
    config = '[setup]\nrun = "sh setup.sh"\n[checks.test]\nrun = "true"\n'
    ground = make(config, files={**FILES, "setup.sh": f"{SETUP}{names}\n"})
    assert ground.passes(ground.project.target)
    _second_tree(ground)
    assert ground.setups() == 2


MODULES = "mkdir -p node_modules/.cache node_modules/lib target; echo 1 > target/step; touch node_modules/.cache/old"
WRITES = (
    "mkdir node_modules/.cache/xo node_modules/.vite/deps && test ! -e node_modules/.cache/old && "
    "! touch node_modules/lib/x 2> /dev/null && test $(cat target/step) = 1 && echo 2 > target/step && touch target/new"
)


@attack(Attacker.AGENT, Door.CHECKS)
def test_a_check_writes_to_caches_and_build_folders_of_setup_and_leaves_nothing(make: Make):
    config = f"[setup]\nrun = '''{MODULES}'''\n[checks.test]\nrun = '''{WRITES}'''\n[landing]\nchecks_at_once = 1\n"
    ground = make(config, {"a.txt": "a\n"})
    assert ground.passes(ground.project.target)
    assert ground.passes(ground.change({"a.txt": "b\n"}))
    (tree,) = (ground.project.folder / "trees").glob("[0-9]*")
    assert ((tree / "target/step").read_text(), (tree / "target/new").exists()) == ("1\n", False)
    assert not (tree / "node_modules/.cache/xo").exists()
    assert ground.setups() == 1


@attack(Attacker.REPOSITORY, Door.CHECKS)
def test_a_link_in_the_place_of_a_cache_leads_nowhere(make: Make, tmp_path: Path):
    (tmp_path / "mine").mkdir()
    setup = f"mkdir node_modules && ln -s {tmp_path}/mine node_modules/.cache && ln -s {tmp_path}/mine target"
    check = "touch node_modules/.cache/x target/x || true"
    ground = make(f"[setup]\nrun = '''{setup}'''\n[checks.test]\nrun = '''{check}'''\n", {"a.txt": "a\n"})
    assert ground.passes(ground.project.target)
    assert list((tmp_path / "mine").iterdir()) == []
