"""Setups that link, build, read through git or make outputs in new folders: right verdicts, and nothing shared."""

from __future__ import annotations

import os

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
