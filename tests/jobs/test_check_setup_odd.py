"""Setups that link, build, read through git or make outputs in new folders: right verdicts, and nothing shared."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from legion.jobs.checks.prepared_tree import prepared
from legion.jobs.workspace.command import CancelToken
from legion.jobs.workspace.setup import SetupFailed
from tests.jobs.test_check_setup import Make, make
from tests.support.attacks import Attacker, Door, attack

__all__ = ["make"]


def config(setup: str, check: str) -> str:
    return f"[setup]\nrun = '''{setup}'''\n[checks.test]\nrun = '''{check}'''\n[landing]\nchecks_at_once = 1\n"


@attack(Attacker.AGENT, Door.CHECKS)
def test_a_check_writes_no_output_through_a_hard_link(make: Make):
    check = "for f in app/*; do . ./$f; done; sh build/tool.sh"
    files = {"src/tool.sh": 'test "$(cat value)" = good\n', "value": "good\n", "app/lib.sh": ":\n"}
    ground = make(config("mkdir -p build && ln src/tool.sh build/tool.sh", check), files)
    assert ground.passes(ground.project.target)
    ground.verdict(ground.change({"app/lib.sh": "echo true > src/tool.sh\n"}))
    assert not ground.passes(ground.change({"value": "bad\n"}))


@attack(Attacker.AGENT, Door.CHECKS)
def test_what_setup_reads_through_git_is_the_changes_own(make: Make):
    setup = "mkdir -p build && git archive HEAD src | tar -x -C build"
    ground = make(config(setup, "grep -q good build/src/value"), {"src/value": "good\n"})
    assert ground.passes(ground.project.target)
    assert not ground.passes(ground.change({"src/value": "bad\n"}))


def test_sources_are_not_newer_than_what_setup_built_of_them(make: Make):
    setup = "mkdir -p build && cp lock build/lock && cp src/a build/x"
    check = 'test build/x -nt src/a || test "$(stat -c %Y build/x)" = "$(stat -c %Y src/a)"'
    ground = make(config(setup, check), {"src/a": "a\n", "lock": "1\n", "readme": "r\n"})
    assert ground.passes(ground.project.target)
    landed = ground.change({"lock": "2\n"})
    assert ground.passes(landed)
    ground.land(landed)
    assert ground.passes(ground.change({"readme": "s\n"}))
    assert ground.passes(ground.change({"readme": "t\n"}))


def test_a_new_folder_keeps_what_setup_makes_in_it(make: Make):
    setup = "for p in pk/*/; do mkdir -p $p/mods; cp $p/package $p/mods/lib; done"
    check = "for p in pk/*/; do test -e $p/mods/lib || exit 1; done"
    ground = make(config(setup, check), {"pk/a/package": "a\n"})
    assert ground.passes(ground.project.target)
    assert ground.passes(ground.change({"pk/b/package": "b\n"}))


def test_a_pipe_among_the_downloads_stops_no_check(make: Make):
    ground = make(config("mkdir -p build && cp lock build/lock", "test -e build/lock"), {"lock": "1\n"})
    ground.project.cache.mkdir(parents=True, exist_ok=True)
    os.mkfifo(ground.project.cache / "pipe")
    assert ground.passes(ground.project.target)
    assert ground.passes(ground.change({"lock": "2\n"}))


RELINK = """want=$(stat -c %i active); rm active; i=0
while [ $i -lt 200 ]; do i=$((i+1)); ln -s rules/lenient l$i
test "$(stat -c %i l$i)" = $want && { mv l$i active; break; }; done
"""


@attack(Attacker.AGENT, Door.CHECKS)
def test_a_link_that_a_check_puts_in_the_place_of_an_output_serves_no_other(make: Make):
    check = "for f in app/*; do . ./$f; done; sh active/run.sh"
    rules = {"rules/strict/run.sh": "grep -q good value\n", "rules/lenient/run.sh": "true\n"}
    ground = make(config("ln -sfn rules/strict active", check), {**rules, "value": "good\n", "app/lib.sh": ":\n"})
    assert ground.passes(ground.project.target)
    ground.verdict(ground.change({"app/lib.sh": RELINK}))
    assert not ground.passes(ground.change({"value": "bad\n"}))


@attack(Attacker.AGENT, Door.CHECKS)
def test_a_change_with_a_file_in_the_place_of_an_output_takes_it_from_no_other(make: Make):
    files = {"deps/seed": "good\n", "lib/a.py": "a\n", "lib/sub/b.py": "b\n", "value": "good\n"}
    setup = "mkdir -p lib/vendor && cp deps/seed lib/vendor/dep.py && cp deps/seed lib/vendor/other.py"
    ground = make(config(setup, "if test -e lib/vendor/dep.py; then grep -q good value; fi"), files)
    assert ground.passes(ground.project.target)
    ground.verdict(ground.change({"lib/vendor/dep.py": "good\n"}))
    assert not ground.passes(ground.change({"value": "bad\n"}))


def test_a_change_of_attributes_gets_what_setup_makes_of_the_files_in_their_new_form(make: Make):
    files = {"conf/a.txt": "1\n", ".gitattributes": "*.x text\n"}
    ground = make(config("mkdir -p env; cp conf/a.txt env/a.txt", "cmp conf/a.txt env/a.txt"), files)
    assert ground.passes(ground.project.target)
    assert ground.passes(ground.change({".gitattributes": "*.txt text eol=crlf\n"}))


@attack(Attacker.AGENT, Door.CHECKS)
def test_nothing_that_setup_makes_of_a_change_stops_its_check(make: Make):
    long = "n" * 253
    setup = "mkdir -p node_modules && cp lock node_modules/x; sh post.sh"
    ground = make(config(setup, "test -e node_modules/x"), {"lock": "1\n", "post.sh": ":\n", long: "x\n"})
    odd = "echo > node_modules/.cache; mkfifo node_modules/.vite; ln -s nowhere node_modules/.vitest"
    assert ground.passes(ground.change({"post.sh": f"{odd}; ln {long} node_modules/l\n"}))
    # No disk has room for a copy.
    assert ground.passes(ground.change({"post.sh": "truncate -s 900G lock; ln lock node_modules/l\n"}))


def test_files_that_stop_us_in_the_tree_of_a_change_are_its_fault_and_a_full_disk_is_not(make: Make):
    ground = make(config("cat lock", "true"), {"lock": "1\n"})
    own = (ground.board.context, ground.project, 0, ground.change({"lock": "2\n"}), CancelToken())
    with pytest.raises(SetupFailed, match="File exists"), prepared(*own) as ready:
        ready.show()[0].mkdir()
    with pytest.raises(OSError, match="No space"), prepared(*own), Path("/dev/full").open("w") as full:
        full.write("1")
