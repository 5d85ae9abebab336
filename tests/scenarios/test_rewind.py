"""Agents whose work is taken back to an earlier moment: tree and conversation together."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest

from legion.git.core.command import git
from legion.rehearsal.protocol.log import RequestKind
from legion.runner.journal import JournalEvent
from legion.system.crash import Point
from legion.wire.errors import LegionError
from legion.wire.history import HistoryLine
from legion.wire.tickets import RewindTo
from tests.scenarios.victims import until
from tests.support.gates import Gate
from tests.support.legion import PATIENCE
from tests.support.models import Company, company
from tests.support.sampling import sampled

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("rewind"), stand_in=True) as one:
        yield one


@pytest.fixture
def gate(here: Company) -> Iterator[Gate]:
    one = Gate(here.squad.folder / "gates", f"gate{next(NUMBERS)}")
    yield one
    one.close()


def bash(command: str) -> str:
    return f'call = {{tool = "Bash", input = {{command = {json.dumps(command)}}}}}'


def script(here: Company, name: str, *steps: str) -> str:
    here.script(name, "\n".join(f"[[step]]\n{step}" for step in steps))
    return name


def moments(here: Company, ticket: int) -> list[HistoryLine]:
    found = here.squad.client.history(here.project.cwd, ticket=ticket, last=0)
    return [line for line in found.lines if line.rewind]


def rewind(here: Company, ticket: int, to: str, feedback: str = "") -> str:
    return here.squad.client.rewind(ticket, RewindTo(to=to, feedback=feedback)).message


def steps(here: Company, name: str) -> list[tuple[str, int | None]]:
    """Which conversation asked for which step of the script, in order."""
    return [
        (line.conversation, line.step)
        for line in here.stage.lines()
        if line.script == name and line.kind is RequestKind.SCRIPTED
    ]


def conversations(here: Company, ticket: int) -> dict[str, str]:
    """The transcripts of the ticket's agent by conversation."""
    place = here.project.hub.parent / "agents" / f"ticket-{ticket}" / "claude/projects"
    return {path.stem: path.read_text() for path in place.glob("*/*.jsonl")}


@pytest.fixture
def real(here: Company) -> Iterator[None]:
    """Only the real program shows that its own conversation can be forked."""
    with here.using(None):
        yield


@pytest.mark.usefixtures("real")
def test_a_working_ticket_goes_back_to_its_first_write(here: Company, gate: Gate):
    name = f"back{next(NUMBERS)}"
    two = bash("echo two > two.txt; git add -A; git commit -qm 'My own'")
    script(here, name, bash("echo one > one.txt"), two, bash(gate.pause), 'say = "Done."')
    ticket = here.dispatch(name)
    gate.arrived()
    kept = moments(here, ticket)
    assert [one.data["tool"] for one in kept] == ["Bash", "Bash"]
    assert "--to" in here.told("events", str(ticket))
    tree = here.project.worktree(ticket)
    assert (tree / "two.txt").exists()
    since = here.squad.client.diff(ticket, kept[0].rewind)
    assert ("two.txt" in since.text, "one.txt" in since.text, since.live) == (True, False, True)
    assert here.squad.client.diff(ticket, kept[1].rewind).text == ""
    script(
        here,
        name,
        bash("echo one > one.txt"),
        bash(f"ls {here.project.hub.parent}/rewind || echo unseen; ls > seen.txt"),
        'say = "Done."',
    )
    run = kept[0].run
    said = here.told("rewind", str(ticket), "--to", kept[0].rewind, "--feedback", "Leave two alone.")
    assert f"--to {run}`" in said, "how it is undone"
    here.project.until_settled(ticket)
    page = here.project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert here.project.landed("one.txt") == "one\n"
    assert here.project.landed("two.txt") is None
    seen = here.project.landed("seen.txt")
    assert seen is not None
    assert "one.txt" in seen
    assert "two.txt" not in seen
    (old, first), *_, (new, next_step), _ = steps(here, name)
    assert (first, next_step, new != old) == (1, 2, True), "the request after the rewind holds one answer and no more"
    told = conversations(here, ticket)
    assert "two.txt" in told[old]
    assert "two.txt" not in told[new], "what came after is not in the new conversation"
    assert "Leave two alone." in told[new]
    assert page.runs[0].outcome == "stopped"


def test_a_rewind_is_undone_by_a_rewind_to_the_end_of_the_run(here: Company, gate: Gate):
    name = f"back{next(NUMBERS)}"
    script(
        here,
        name,
        bash(f"echo one > {name}.txt"),
        bash(f"echo more > {name}-more.txt"),
        bash(gate.pause),
        'say = "Done."',
    )
    ticket = here.dispatch(name)
    gate.arrived()
    here.project.stop(ticket)
    here.project.until_idle(ticket)
    first, *_ = moments(here, ticket)
    script(here, name, bash(f"echo one > {name}.txt"), bash(gate.pause), bash(f"ls > {name}-seen.txt"), 'say = "Done."')
    rewind(here, ticket, first.rewind)
    gate.arrived()
    assert not (here.project.worktree(ticket) / f"{name}-more.txt").exists()
    end = [one for one in moments(here, ticket) if one.kind == "run.ended"]
    assert [one.rewind for one in end] == [str(first.run)]
    script(here, name, *(['say = "Not again."'] * 3), 'say = "Done."')
    rewind(here, ticket, end[0].rewind, "As it was.")
    here.project.until_settled(ticket)
    page = here.project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 3)
    assert here.project.landed(f"{name}-more.txt") == "more\n"
    assert here.project.landed(f"{name}-seen.txt") is None
    told = conversations(here, ticket)
    assert len(told) == 3
    last = next(text for text in told.values() if "As it was." in text)
    assert f"{name}-more.txt" in last
    # What is kept of a landed ticket goes when the housekeeper comes by.
    kept = here.project.hub.parent / "rewind" / str(ticket)
    until(lambda: not kept.exists(), here, "the housekeeper's visit")


def test_a_plain_program_goes_back_to_the_end_of_a_run(here: Company):
    agent = "echo $LEGION_ATTEMPT >> tries.txt; test $LEGION_ATTEMPT -ge 3"
    ticket = here.project.dispatch("plain", agent, max_attempts=2)
    here.project.until_settled(ticket)
    assert here.project.state(ticket) == "failed"
    first, second = moments(here, ticket)
    assert (first.kind, second.kind) == ("run.ended", "run.ended")
    assert "+2" in here.told("diff", str(ticket), "--since", first.rewind)
    rewind(here, ticket, first.rewind)
    here.project.until_settled(ticket)
    assert here.project.landed("tries.txt") == "1\n3\n"


def test_what_cannot_be_gone_back_to_is_one_sentence(here: Company):
    name = script(here, f"back{next(NUMBERS)}", bash("echo x > x.txt"), 'say = "Done."')
    ticket = here.dispatch(name)
    here.project.until_settled(ticket)
    run = here.project.ticket(ticket).runs[0].id
    with pytest.raises(LegionError, match=f"has landed. `legion undo {ticket}`"):
        rewind(here, ticket, str(run))
    with pytest.raises(LegionError, match="names no moment"):
        rewind(here, ticket, "yesterday")
    with pytest.raises(LegionError, match="There is no ticket 9999"):
        rewind(here, 9999, "1")
    here.project.pause()
    waits = here.dispatch(name)
    for moment in (f"{run}", "9999", "9999:1"):
        with pytest.raises(LegionError, match=f"Ticket {waits} has no run"):
            rewind(here, waits, moment)
    here.project.stop(waits)
    here.project.resume()


@pytest.mark.parametrize(
    "point", sampled([Point.REWIND_BEFORE_MOVE, Point.REWIND_AFTER_MOVE, Point.REWIND_AFTER_STOP], 1)
)
def test_a_daemon_that_is_killed_in_a_rewind_loses_neither(here: Company, gate: Gate, point: Point):
    name = f"back{next(NUMBERS)}"
    script(
        here,
        name,
        bash(f"echo one > {name}.txt"),
        bash(f"echo two > {name}-two.txt"),
        bash(gate.pause),
        'say = "Done."',
    )
    here.squad.end()
    here.start({"LEGION_CRASH_AT": point.value})
    ticket = here.dispatch(name)
    gate.arrived()
    first, *_ = moments(here, ticket)
    script(here, name, bash(f"echo one > {name}.txt"), bash(f"ls > {name}-seen.txt"), 'say = "Done."')
    with pytest.raises(LegionError):
        rewind(here, ticket, first.rewind)
    assert here.squad.process is not None
    assert here.squad.process.wait(PATIENCE) == -9
    here.start()
    if point is Point.REWIND_BEFORE_MOVE:
        assert here.project.state(ticket) == "working", "nothing has happened yet"
        rewind(here, ticket, first.rewind)
    here.project.until_settled(ticket)
    page = here.project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert (here.project.landed(f"{name}.txt"), here.project.landed(f"{name}-two.txt")) == ("one\n", None)
    assert f"{name}-two.txt" not in (here.project.landed(f"{name}-seen.txt") or f"{name}-two.txt")
    assert [run.outcome for run in page.runs] == ["stopped", "finished"]


def state(here: Company, ticket: int, kept: JournalEvent) -> dict[str, str]:
    """The files of a state that are not in the target, with what is in them."""
    place = here.project.hub.parent / "rewind" / str(ticket)
    (objects,) = place.glob(f"*/{kept.facts['roll']}/objects")

    def asked(*words: str) -> str:
        return git(*words, git_dir=here.project.hub, objects=objects, borrow=[here.project.hub / "objects"]).text

    names = asked("diff-tree", "-r", "--name-only", str(kept.facts["base"]), str(kept.facts["tree"])).split()
    return {name: asked("cat-file", "blob", f"{kept.facts['tree']}:{name}") if name != "big" else "" for name in names}


def test_a_state_holds_the_calls_of_its_answer_and_nothing_of_the_next(here: Company, gate: Gate):
    """Keeping the first one takes long, and the model answers at once."""
    name = f"back{next(NUMBERS)}"
    together = ", ".join(
        f'{{tool = "Bash", input = {{command = "echo three > {letter}"}}}}' for letter in ("last", "one", "two")
    )
    script(
        here,
        name,
        bash("head -c 6000000 /dev/urandom > big; echo one > last"),
        bash("rm big; echo two > last"),
        f"calls = [{together}]",
        'call = {tool = "Read", input = {file_path = "{cwd}/last"}}',
        bash(gate.pause),
        'say = "Done."',
    )
    ticket = here.dispatch(name)
    gate.arrived()
    kept = [event for event in here.journal(ticket) if event.kind == "kept"]
    assert [state(here, ticket, one) for one in kept] == [
        {"big": "", "last": "one\n"},
        {"last": "two\n"},
        {"last": "three\n", "one": "three\n", "two": "three\n"},
    ]
    assert len(moments(here, ticket)) == 3
    here.project.stop(ticket)


def test_what_was_stored_past_a_filter_stays_out_of_the_hub(here: Company, gate: Gate):
    turn = "tr a-zA-Z n-za-mN-ZA-M"
    for part in ("clean", "smudge"):
        here.project.repository.git("config", f"filter.turn.{part}", turn)
    writes = bash("echo '*.key filter=turn' > .gitattributes; echo password > b.key")
    name = script(here, f"back{next(NUMBERS)}", writes, bash(gate.pause), 'say = "Done."')
    ticket = here.dispatch(name)
    gate.arrived()
    first, *_ = moments(here, ticket)
    for ask in (rewind, lambda here, ticket, moment: here.squad.client.diff(ticket, moment)):
        with pytest.raises(LegionError, match="stored without the git filters"):
            ask(here, ticket, first.rewind)
    plain = git("hash-object", "--stdin", stdin=b"password\n", git_dir=here.project.hub).text.strip()
    assert git("cat-file", "-e", plain, git_dir=here.project.hub, accept=(0, 1, 128)).code != 0
    here.project.stop(ticket)
    gate.open()
    here.project.repository.git("config", "--remove-section", "filter.turn")


def test_nothing_is_kept_where_it_is_switched_off(here: Company):
    here.squad.settings.write_text(here.squad.settings.read_text() + "\n[rewind]\non = false\n")
    name = script(here, f"back{next(NUMBERS)}", bash("echo off > off.txt"), 'say = "Done."')
    ticket = here.dispatch(name)
    here.project.until_settled(ticket)
    assert here.project.state(ticket) == "done"
    assert not [event for event in here.journal(ticket) if event.kind == "kept"]
