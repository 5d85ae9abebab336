"""[setup]: dependencies are there for agents and checks, belong to no change, and are made again only when needed."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.legion import Project, new
from tests.support.looking import until_seen


def test_what_setup_makes_serves_agents_and_checks_and_is_no_change(make: Callable[..., Project]):
    """Also inside folders of the project; and checks cannot write to it."""
    deps = "mkdir deps web/deps && echo yes > deps/there && echo yes > web/deps/there"
    reads = "grep yes deps/there && grep yes web/deps/there && grep made web/generated.txt"
    project = make(
        f"[setup]\nrun = '{deps} && echo made > web/generated.txt'\n"
        f"[checks.test]\nrun = '! touch deps/poison 2>&1 && ! rm deps/there && touch elsewhere && {reads}'\n",
        files={"web/page.txt": "page\n"},
    )
    ticket = project.dispatch("uses it", "cat deps/there web/deps/there > web/a.txt")
    project.until_settled()
    assert project.state(ticket) == "done"
    assert project.landed("web/a.txt") == "yes\nyes\n"
    made = ("deps/there", "web/deps/there", "web/generated.txt")
    assert [project.landed(name) for name in made] == [None] * 3


MAKES = "[setup]\nrun = 'mkdir -p deps cache && touch deps/lib.txt cache/x && echo made > made.txt'\n"


def test_an_agent_hears_that_its_edits_of_what_setup_made_do_not_land(make: Callable[..., Project]):
    project = make(MAKES, files={".gitignore": "cache/\n"})
    agent = "echo mine > made.txt; touch deps/more.txt; touch cache/y; echo a > a.txt"
    only = """
    if grep -q -- '- made.txt' "$LEGION_BRIEFING"; then echo c > c.txt; else touch -d @0 made.txt; rm -r deps; fi
    """
    quiet, loud, vain = project.dispatch_all(
        [new("quiet", "cat made.txt deps/lib.txt > b.txt"), new("loud", agent), new("in vain", only, max_attempts=2)]
    )
    project.until_settled()
    assert (project.landed("a.txt"), project.landed("b.txt")) == ("a\n", "made\n")
    assert (project.landed("made.txt"), project.landed("deps/more.txt")) == (None, None)
    said = project.ticket(loud).runs[-1].detail
    assert said == "exit code 0; not part of the change: what [setup] made (deps, made.txt)"
    assert project.ticket(quiet).runs[-1].detail == "exit code 0"
    page = project.ticket(vain)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    back = next(event for event in page.history if event.data.get("to") == "queued" and event.data.get("cause"))
    assert back.data["reason"] == "it changed nothing but what [setup] made (deps, made.txt)"


EDITS = "[setup]\nrun = 'echo by setup >> lock.txt; mkdir -p src/a.egg-info; echo made > src/a.egg-info/PKG-INFO'\n"


def test_what_setup_did_is_no_change_of_the_agent(make: Callable[..., Project]):
    project = make(EDITS, files={"lock.txt": "1\n", "src/a.txt": "a\n"})
    idle, more, own = project.dispatch_all(
        [
            new("idle", "true", max_attempts=1),
            new("more", "echo by the agent >> lock.txt"),
            new("own", "echo b > src/b.txt; git add --all --force; git commit --quiet --message mine"),
        ]
    )
    project.until_settled()
    page = project.ticket(idle)
    assert (page.ticket.state, page.ticket.reason.rpartition(": ")[2]) == ("failed", "it changed nothing")
    assert (project.state(more), project.state(own)) == ("done", "done")
    assert project.landed("src/b.txt") == "b\n"
    assert project.landed("src/a.egg-info/PKG-INFO") is None
    assert project.landed("lock.txt") == "1\nby setup\nby the agent\n"


def test_nothing_of_a_removed_setup_is_left_in_new_trees(make: Callable[..., Project]):
    project = make("[setup]\nrun = 'mkdir -p deps; echo yes > deps/there'\n[checks.test]\nrun = 'true'\n")
    project.dispatch("first", "touch a.txt")
    project.until_settled()
    client = project.squad.client
    until_seen(
        project.squad,
        lambda: any(one.state == "warm" for one in client.worktrees(project.cwd).worktrees),
        "a warm worktree",
    )
    project.repository.commit("no setup", {"legion.toml": "[checks.test]\nrun = '! test -e deps'\n"})
    project.trust()
    project.dispatch("second", "touch b.txt")
    project.until_settled()
    assert "setup" not in (project.landed("legion.toml") or "setup")
    third = project.dispatch("third", "ls > seen.txt")
    project.until_settled()
    assert project.state(third) == "done"
    assert "deps" not in (project.landed("seen.txt") or "deps")


def test_setup_runs_again_only_where_a_key_file_changed(make: Callable[..., Project]):
    project = make(
        "[setup]\nrun = 'mkdir -p deps && cp lock.txt deps/installed && date +%s%N > deps/when'\nkey = ['lock.txt']\n"
        "[checks.test]\nrun = 'cmp lock.txt deps/installed && cat deps/when'\n"
        "[landing]\nchecks_at_once = 1\n",
        files={"lock.txt": "1\n", "src/code.txt": "1\n"},
    )
    first = project.dispatch("first", "touch src/a.txt")
    project.until_settled()
    second = project.dispatch("second", "echo 2 > src/code.txt")
    project.until_settled()
    locked = project.dispatch("locked", "echo 2 > lock.txt")
    project.until_settled()
    assert {project.state(ticket) for ticket in (first, second, locked)} == {"done"}
    made = [project.ticket(ticket).receipts[-1].tail for ticket in (first, second, locked)]
    assert made[0] == made[1]
    assert made[1] != made[2]


def test_a_setup_that_fails_is_said_and_blames_no_agent(make: Callable[..., Project]):
    project = make("[setup]\nrun = 'echo the mirror is down; exit 4'\n[checks.test]\nrun = 'true'\n")
    ticket = project.dispatch("a", "touch a.txt")
    settled = project.until_settled()
    assert settled.stuck == [ticket]
    assert "[setup] command `echo the mirror is down; exit 4` failed" in project.ticket(ticket).ticket.doing
    project.repository.commit("mended", {"legion.toml": "[setup]\nrun = 'true'\n[checks.test]\nrun = 'true'\n"})
    project.trust()
    project.until(ticket, "done")
    assert project.ticket(ticket).ticket.attempt == 1
