"""Any program is an agent: what it is told, what counts as its change, and what happens when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from legion.wire.errors import BadInput
from legion.wire.ticket_pages import TicketPage
from tests.scenarios.conftest import shared_project
from tests.support.legion import Project, Squad, new, squad
from tests.support.repository import Repository
from tests.support.settings import without_trial


@pytest.fixture(scope="module")
def project(house: Squad, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    files = {".gitignore": "*.log\nbuild/\n", "old.txt": "old\n", "gone.txt": "gone\n", "tool.sh": "true\n"}
    yield from shared_project(house, tmp_path_factory.mktemp("agents"), files)


def test_the_briefing_comes_on_stdin_and_in_a_file_with_everything_the_person_said(project: Project):
    agent = """
    cat > stdin.txt
    cp "$LEGION_BRIEFING" file.txt
    echo "ticket $LEGION_TICKET attempt $LEGION_ATTEMPT in $(git rev-parse --abbrev-ref HEAD)" > who.txt
    """
    ticket = project.dispatch(
        "a title",
        agent,
        text="the text",
        context="the context",
        criteria="the criteria",
        plan="the plan",
        files=["docs/**"],
        prove=["true"],
    )
    project.until_settled(ticket)
    told = project.landed("stdin.txt") or ""
    assert told == project.landed("file.txt")
    for words in ("a title", "the text", "the context", "the criteria", "the plan", "docs/**", "sh check.sh", "`true`"):
        assert words in told
    assert project.landed("who.txt") == f"ticket {ticket} attempt 1 in legion/{ticket}\n"


def test_every_kind_of_change_lands_as_it_is_and_what_git_does_not_keep_is_said_and_not_lost(project: Project):
    steps = """
    echo one > one.txt && git add one.txt && git commit -qm 'my first step'
    echo two > two.txt && git add two.txt && git commit -qm 'my second step'
    echo staged > staged.txt && git add staged.txt
    mkdir -p deep/er && echo untracked > deep/er/untracked.txt
    echo changed > README.txt
    """
    inner = "git init -q inner && echo in > inner/a.txt && git -C inner add . && git -C inner commit -qm in; echo o > o"
    _, noise, _, nested = project.dispatch_all(
        [
            new("steps", steps),
            new("noise", "echo noise > a.log; mkdir build; echo made > build/it; echo n > noise.txt"),
            new("shuffle", "rm gone.txt; mv old.txt new.txt; chmod +x tool.sh; ln -s new.txt link.txt"),
            new("nested", inner),
        ]
    )
    project.until_settled()
    expected = {"one": "one", "two": "two", "staged": "staged", "deep/er/untracked": "untracked", "README": "changed"}
    assert {name: project.landed(f"{name}.txt") for name in expected} == {k: f"{v}\n" for k, v in expected.items()}
    history = project.history()
    assert "my first step" in history
    assert "my second step" in history
    assert history.count("steps") == 1, "the merge alone carries the title"
    # Ignored files do not land, and are not lost either.
    assert [project.landed(name) for name in ("noise.txt", "a.log", "build/it")] == ["n\n", None, None]
    assert project.kept(noise, "a.log") == "noise\n"
    assert project.kept(noise, "build/it") == "made\n"
    listed = project.hub_git("ls-tree", "-r", "--format=%(objectmode) %(path)", "refs/legion/target").splitlines()
    assert {"100644 new.txt", "100755 tool.sh", "120000 link.txt"} <= set(listed)
    assert not {"100644 old.txt", "100644 gone.txt"} & set(listed)
    page = project.ticket(nested)
    assert page.ticket.state == "done"
    assert "nested repositories inner" in page.runs[-1].detail
    assert project.landed("inner/a.txt") is None
    assert project.kept(nested, "inner/a.txt") == "in\n"


def test_an_agent_that_crashes_goes_on_with_what_it_left_and_one_that_left_nothing_hears_why(project: Project):
    crashes = """
    if [ -e half.txt ]; then grep -q 'exit code 3' "$LEGION_BRIEFING" && echo whole > whole.txt; exit; fi
    echo half > half.txt; echo something broke >&2; exit 3
    """
    pipe = """
    if [ $LEGION_ATTEMPT = 1 ]; then mkfifo pipe; exit; fi
    grep -q 'pipe (a named pipe)' "$LEGION_BRIEFING" && echo plain > plain.txt
    """
    half, often, piped = project.dispatch_all(
        [
            new("crash", crashes),
            new("crash", 'echo x >> crash.txt; [ "$LEGION_ATTEMPT" = 3 ]', max_attempts=3),
            new("pipe", pipe),
        ]
    )
    project.until_settled()
    page = project.ticket(half)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert [run.outcome for run in page.runs] == ["failed", "finished"]
    assert (project.landed("half.txt"), project.landed("whole.txt")) == ("half\n", "whole\n")
    page = project.ticket(often)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 3)
    assert "parked" not in {event.data.get("to") for event in page.history}, "it left a change, and needs no rest"
    page = project.ticket(piped)
    assert (page.ticket.state, page.ticket.attempt, project.landed("plain.txt")) == ("done", 2, "plain\n")
    assert [run.detail for run in page.runs] == ["exit code 0; not part of the change: pipe (a named pipe)"] * 2


def test_work_on_another_branch_or_in_the_stash_is_named_and_the_agent_brings_it_in(project: Project):
    agent = """
    if test "$LEGION_ATTEMPT" = 1; then
        git checkout -q -b side; echo a > a.txt; git add a.txt; git commit -qm a; git checkout -q -
        echo stashed > README.txt; git stash -q
    else
        grep -q '`git merge side`' "$LEGION_BRIEFING" && git merge -q side
        grep -q '`git stash pop`' "$LEGION_BRIEFING" && git stash pop -q
    fi
    """
    ticket = project.dispatch("elsewhere", agent)
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert (project.landed("a.txt"), project.landed("README.txt")) == ("a\n", "stashed\n")
    back = next(event for event in page.history if event.data.get("to") == "queued" and event.data.get("cause"))
    assert back.data["reason"] == "it changed nothing, but has work elsewhere in its repository (side, refs/stash)"


def test_a_ticket_fails_when_its_attempts_are_used_up_and_says_why(project: Project):
    ticket = project.dispatch("hopeless", "echo BROKEN > broken.txt", max_attempts=2)
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("failed", 2)
    assert page.ticket.reason == "gave up after 2 attempts: checks failed: `sh check.sh`"
    assert page.cause == "checks"
    assert project.squad.cli("wait", str(ticket), cwd=project.repository.root).returncode == 6
    assert project.landed("broken.txt") is None


def test_a_program_that_fails_at_once_rests_longer_and_longer_and_resume_ends_a_rest(project: Project):
    ticket = project.dispatch("hopeless", "echo nobody is logged in; exit 1", max_attempts=4)
    page = resting(project, ticket, attempt=3)
    assert "the agent's program failed (exit code 1); it rests" in page.ticket.reason
    project.squad.client.resume_ticket(ticket)
    project.until_settled(ticket)
    done = project.ticket(ticket)
    assert (done.ticket.state, done.ticket.attempt, done.cause) == ("failed", 4, "attempt")
    began = [run.started_at for run in done.runs]
    assert began[1] - began[0] >= 1
    assert began[2] - began[1] >= 2
    assert began[3] < (page.parked_until or 0.0)
    rests = [str(event.data["reason"]) for event in done.history if event.data.get("to") == "parked"]
    assert [f"rests {seconds} s" in rest for rest, seconds in zip(rests, (1, 2, 4), strict=True)] == [True] * 3


def resting(project: Project, ticket: int, attempt: int) -> TicketPage:
    """Its page while it rests after this attempt or a later one."""
    pages = [project.ticket(ticket)]

    def rests() -> bool:
        pages.append(project.ticket(ticket))
        return pages[-1].ticket.state == "parked" and pages[-1].ticket.attempt >= attempt

    project.until_true(rests)
    return pages[-1]


def test_a_retry_after_the_last_attempt_counts_anew_and_knows_what_went_wrong(project: Project):
    agent = """
    if grep -q './bad.txt' "$LEGION_BRIEFING" && grep -q 'no bad words' "$LEGION_BRIEFING"; then
        echo fine > bad.txt
    else
        echo BROKEN > bad.txt
    fi
    """
    ticket = project.dispatch("hopeless", agent, max_attempts=1)
    project.until_settled(ticket)
    assert project.state(ticket) == "failed"
    project.retry(ticket, feedback="no bad words")
    project.until_settled(ticket)
    line = project.ticket(ticket).ticket
    assert (line.state, line.attempt, line.max_attempts) == ("done", 2, 2)


def test_an_agent_that_takes_too_long_is_ended_and_told_so(make: Callable[..., Project]):
    project = make("[agents]\ntimeout = 1\nattempts = 2\n")
    agent = """
    if [ -e slow.txt ]; then grep -q 'limit of 1 s' "$LEGION_BRIEFING" && touch quick.txt; exit; fi
    touch slow.txt; exec sleep 60
    """
    ticket = project.dispatch("slow", agent)
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert [run.outcome for run in page.runs] == ["timed_out", "finished"]
    assert (page.ticket.state, project.landed("quick.txt")) == ("done", "")


def test_what_an_agent_prints_is_kept_whole_and_can_be_read(project: Project):
    agent = "echo to stdout; echo to stderr >&2; seq 1 100000; printf 'no newline \\342\\202\\254'; touch talk.txt"
    ticket = project.dispatch("talk", agent)
    project.until_settled(ticket)
    text, offset = "", 0
    while not (piece := project.squad.client.log(ticket, offset=offset)).ended or piece.text:
        text, offset = text + piece.text, piece.next_offset
    assert text.startswith("to stdout\nto stderr\n1\n2\n")
    assert text.endswith("\n100000\nno newline €")
    assert text.count("\n") == 100_002


@pytest.fixture
def equipped(tmp_path: Path) -> Iterator[Project]:
    """A project whose person has got drivers of their own."""
    (tmp_path / "agent.sh").write_text('echo "$1 was briefed: $(head -1)" > "$1.txt"\n')
    drivers = f"""
    default_driver = "first"
    [drivers.first]
    run = "sh {tmp_path}/agent.sh first"
    [drivers.second]
    run = "sh '{tmp_path}/agent.sh' 'second one'"
    timeout = 30
    [drivers.missing]
    run = "no-such-program --flag"
    """
    walls = f'[sandbox]\nread = ["{tmp_path}/agent.sh"]\n'
    with squad(tmp_path, settings=walls) as one:
        project = one.adopt(Repository(tmp_path / "ada"))
        with pytest.raises(BadInput, match="There is no driver"):
            project.dispatch("by name", driver="second")
        one.settings.write_text(without_trial(f"{drivers}\n{walls}"))
        yield project


def test_drivers_come_from_the_persons_settings_which_are_read_again_when_they_change(equipped: Project):
    project = equipped
    default, named = project.dispatch_all([new("by default"), new("by name", driver="second")])
    missing = project.dispatch("cannot start", driver="missing")
    project.until_settled()
    assert project.landed("first.txt") == f"first was briefed: # Ticket {default}: by default\n"
    assert project.landed("second one.txt") == f"second one was briefed: # Ticket {named}: by name\n"
    page = project.ticket(missing)
    assert (page.ticket.state, page.ticket.attempt, page.runs[-1].outcome) == ("failed", 1, "not_started")
    assert "no-such-program" in page.ticket.reason
    with pytest.raises(BadInput, match=r"There is no driver .nobody.*\[drivers.nobody\]"):
        project.dispatch("unknown", driver="nobody")


def test_a_ticket_without_any_program_is_for_claude_code_and_waits_for_a_way_to_a_model(project: Project):
    ticket = project.dispatch("no program")
    page = project.until(ticket, "parked")
    assert "legion provider add" in page.ticket.reason
    project.stop(ticket)
