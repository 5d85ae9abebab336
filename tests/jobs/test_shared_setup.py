"""What trees of a project share: downloads of package managers, and outputs of [setup] that work in any folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.domain.checks import Check
from legion.jobs.checks import execution
from legion.jobs.checks.prepared_tree import prepared
from legion.jobs.workspace.cancellation import CancelToken
from tests.jobs.test_check_setup import FILES, SETUP, Ground, Make, make
from tests.support.attacks import Attacker, Door, attack

__all__ = ["make"]

COUNTS = """\
[checks.test]
run = "sh check.sh"
[landing]
checks_at_once = 1
"""


def counts(lines: int) -> dict[str, str]:
    script = f'mkdir -p "$CARGO_HOME" && cd "$CARGO_HOME" && echo x >> got && test $(wc -l < got) = {lines}'
    return {"check.sh": script}


@attack(Attacker.AGENT, Door.CHECKS)
def test_checks_read_what_a_check_of_the_target_downloaded_and_leave_nothing(make: Make):
    ground = make(COUNTS, counts(1))
    assert ground.passes(ground.project.target)
    assert ground.passes(ground.change(counts(2)))
    assert ground.passes(ground.change({**counts(2), "more.txt": "x\n"}))
    assert (ground.project.cache / "cargo/got").read_text() == "x\n"


def test_an_acceptance_leaves_nothing_that_agents_could_read(make: Make, tmp_path: Path):
    ground = make(COUNTS, counts(1))
    assert ground.passes(ground.project.target)
    (tmp_path / "held").mkdir()
    acceptance = Check(
        name="held", command="held", runs='mkdir -p "$CARGO_HOME/answers"', folder=str(tmp_path / "held")
    )
    wanted = execution.WantedCheck(check=acceptance)
    assert execution.test(ground.board.context, ground.project, ground.project.target, [wanted]).green
    assert not (ground.project.cache / "cargo/answers").exists()


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
