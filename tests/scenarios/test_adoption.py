"""Conversations of the person: adopted as tickets, asked afterwards, and handed back to the terminal.

A stand-in plays Claude Code where no conversation passes between the person's program and Legion's.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.drivers.claude.profile import find
from legion.system.crash import Point
from legion.wire.conversations import AdoptConversation, AskConversation
from legion.wire.errors import LegionError, Retryable
from tests.support.gates import Gate
from tests.support.legion import PATIENCE
from tests.support.looking import until_seen
from tests.support.models import Company, company
from tests.support.sampling import sampled

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    settings = "[reviewer]\nlessons = true\n"
    with company(tmp_path_factory.mktemp("adoption"), settings=settings, stand_in=True) as one:
        yield one


def bash(command: str) -> str:
    return f'call = {{tool = "Bash", input = {{command = {json.dumps(command)}}}}}'


def script(here: Company, *steps: str) -> str:
    name = f"adopt{next(NUMBERS)}"
    here.script(name, "\n".join(f"[[step]]\n{step}" for step in steps))
    return name


def claude(here: Company, folder: Path, *words: str) -> str:
    """The person's own Claude Code, without a terminal."""
    env = {
        **os.environ,
        "CLAUDE_CONFIG_DIR": str(here.squad.folder / "nobody"),
        "ANTHROPIC_BASE_URL": here.stage.url,
        "ANTHROPIC_AUTH_TOKEN": "x",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }
    argv = [str(find("").path), "-p", *words, "--permission-mode", "bypassPermissions"]
    done = subprocess.run(
        argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def talk(here: Company, *steps: str) -> str:
    """A conversation of the person's in their checkout. Returns its id."""
    claude(here, here.project.repository.root, f"rehearsal: {script(here, *steps)}. Please begin.")
    found = here.squad.client.conversations(1.0, 20.0).conversations
    return next(one.id for one in found if one.program == "claude")


def recorded(here: Company, *texts: str) -> str:
    """A conversation of the person's in their checkout, as Claude Code writes it down. Returns its id."""
    cwd, id = str(here.project.repository.root), str(uuid.uuid4())
    entries, last = [], None
    for text, role in zip(texts, itertools.cycle(("user", "assistant")), strict=False):
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        same = {"sessionId": id, "cwd": cwd, "isSidechain": False, "version": "2.1.319"}
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        entry = {"parentUuid": last, **same, "timestamp": stamp, "type": role, "message": message}
        last = str(uuid.uuid4())
        entries.append(json.dumps({**entry, "uuid": last}))
    place = here.squad.folder / "nobody/projects" / re.sub(r"[^a-zA-Z0-9]", "-", cwd)
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{id}.jsonl").write_text("\n".join(entries) + "\n")
    return id


def adopt(here: Company, id: str = "", **more: str) -> int:
    return here.squad.client.adopt(AdoptConversation(cwd=here.project.cwd, id=id, **more)).ticket


def transcripts(here: Company, ticket: int) -> dict[str, str]:
    """The texts of the conversations of the ticket's agent, by their ids."""
    place = here.project.hub.parent / "agents" / f"ticket-{ticket}" / "claude/projects"
    return {path.stem: path.read_text() for path in place.glob("*/*.jsonl")}


def test_a_conversation_becomes_a_ticket_that_lands_the_persons_work(here: Company):
    repository = here.project.repository
    id = talk(here, bash("echo half > half.txt; echo more >> README.txt"), 'say = "A zebra is half done."')
    repository.git("add", "half.txt")
    status = repository.git("status", "--porcelain")
    before = repository.fingerprint()
    here.project.pause()
    rest = script(here, bash("cat half.txt > whole.txt"), 'say = "The rest is done."')
    ticket = adopt(here, text=f"rehearsal: {rest}")
    with here.using(None):
        _it_lands_the_work_in_its_own_conversation(here, ticket, id)
    assert repository.fingerprint() == before
    assert repository.git("status", "--porcelain") == status
    repository.git("reset", "--quiet", "--hard")


def _it_lands_the_work_in_its_own_conversation(here: Company, ticket: int, id: str) -> None:
    page = here.project.ticket(ticket)
    assert page.ticket.title.startswith("rehearsal: adopt")
    with pytest.raises(LegionError, match=f"Ticket {ticket} continues conversation {id} already"):
        adopt(here, id[:8])
    here.project.resume()
    here.project.until_settled(ticket)
    assert here.project.state(ticket) == "done"
    assert here.project.landed("half.txt") == "half\n"
    assert here.project.landed("whole.txt") == "half\n"
    assert here.project.landed("README.txt") == "hello\nmore\n"
    found = transcripts(here, ticket)
    (own,) = set(found) - {id}
    assert "A zebra is half done." in found[own], "it remembers"
    assert "The person handed this conversation over" in found[own]
    assert found[id].count("Please begin.") >= 1, "and what it continues is as it was"
    lines = here.squad.client.history(here.project.cwd, ticket=ticket, last=0).lines
    assert [line.data["source"] for line in lines if line.kind == "ticket.adopted"] == [id]
    _a_landed_ticket_is_asked(here, ticket)
    with pytest.raises(
        LegionError, match=f"Ticket {ticket} has landed; `legion conversations ask {ticket} TEXT` asks its agent."
    ):
        here.squad.client.handoff(ticket)


def _a_landed_ticket_is_asked(here: Company, ticket: int) -> None:
    """In the same test: each Claude Code takes seconds."""
    before, runs = transcripts(here, ticket), len(here.project.ticket(ticket).runs)
    write = 'call = {tool = "Write", input = {file_path = "{cwd}/x", content = "x"}}'
    why = script(here, write, 'expect = "(?i)error"\nsay = "For the zebra."')
    answer = here.squad.client.ask_conversation(AskConversation(id=f"#{ticket}", question=f"rehearsal: {why}. Why?"))
    assert (answer.answer, answer.usd is not None) == ("For the zebra.", True)
    assert transcripts(here, ticket) == before
    assert len(here.project.ticket(ticket).runs) == runs
    (hit,) = here.squad.client.search_conversations("rest done", 1.0, 20, 20.0).hits
    assert (hit.conversation.program, hit.conversation.ticket) == ("legion", ticket)


def test_a_ticket_is_handed_to_the_terminal_and_back(here: Company):
    gate = Gate(here.squad.folder / "gates", f"gate{next(NUMBERS)}")
    name = script(here, bash("echo one > handed.txt"), bash(gate.pause), 'say = "Done."')
    ticket = here.dispatch(name)
    gate.arrived()
    with pytest.raises(LegionError, match=f"not finished: `legion tell {ticket} TEXT` reaches it"):
        here.squad.client.ask_conversation(AskConversation(id=str(ticket), question="Why?"))
    given = here.squad.client.handoff(ticket)
    gate.close()
    assert here.project.state(ticket) == "parked"
    tree = Path(given.folder)
    assert (tree / "handed.txt").read_text() == "one\n"
    mine = script(here, bash("echo two >> handed.txt"), 'say = "As you wish."')
    assert given.argv[1:] == ["--resume", given.conversation]
    assert claude(here, tree, f"rehearsal: {mine}", *given.argv[1:]) == "As you wish."
    assert here.squad.client.handoff(ticket).transcript == given.transcript, "what was written there stays"
    for one in (name, mine):
        here.script(one, '[[step]]\nsay = "Done."')
    here.squad.client.resume_ticket(ticket)
    here.project.until_settled(ticket)
    assert here.project.landed("handed.txt") == "one\ntwo\n"
    assert "As you wish." in transcripts(here, ticket)[given.conversation], "and comes back with the ticket"


def test_a_reader_of_the_conversation_words_the_lesson_of_a_failed_attempt(here: Company):
    learned = json.dumps({"lesson": "The till is counted, never BROKEN.", "files": ["till.*"]})
    name = script(
        here,
        bash("echo BROKEN > till.txt"),
        'say = "Done."',
        f"attempt = 2\n{bash('echo counted > till.txt')}",
        'attempt = 2\nsay = "Done now."',
        f'attempt = 2\nexpect = "(?s)attempt 1: checks failed"\nsay = {json.dumps(learned)}',
    )
    ticket = here.dispatch(name)
    here.project.until_settled(ticket)
    assert here.project.state(ticket) == "done"
    until_seen(here.squad, lambda: bool(here.squad.client.lessons(here.project.cwd).lessons), "a proposed lesson")
    (lesson,) = here.squad.client.lessons(here.project.cwd).lessons
    assert (lesson.text, lesson.files, lesson.proposed) == ("The till is counted, never BROKEN.", ["till.*"], True)


def test_commits_of_the_person_are_no_part_of_an_adopted_change_unless_it_says_so(here: Company):
    repository = here.project.repository
    here.project.pause()
    home = repository.git("branch", "--show-current").strip()
    id = recorded(here, "Please begin.", "Begun.")
    repository.commit("Mine", {"committed.txt": "mine\n"})
    repository.write({"open.txt": "open\n"})
    made: list[tuple[list[str], list[str]]] = []
    waited: list[str] = []

    def adopts() -> bool:
        before = _saved(here)
        try:
            given = here.squad.client.adopt(AdoptConversation(cwd=here.project.cwd, id=id))
        except Retryable as pending:
            waited.append(pending.message)
            return False
        (commit,) = _saved(here) - before
        changed = here.project.hub_git("diff", "--name-only", f"{commit}^", commit).split()
        made.append((changed, [note for note in given.notes if "part of the change" in note]))
        here.project.stop(given.ticket)
        return True

    until_seen(here.squad, adopts, "an adoption")
    repository.git("switch", "--quiet", "-c", "aside")
    repository.commit("Beside the target", {"beside.txt": "mine\n"})
    until_seen(here.squad, adopts, "an adoption of another branch")
    note = f"1 commit that {home} lacks becomes part of the change: Beside the target."
    assert made == [(["open.txt"], []), (["beside.txt", "open.txt"], [note])]
    assert all(f"Your own commits on {home} are being checked" in one for one in waited)
    (repository.root / "open.txt").unlink()
    repository.git("switch", "--quiet", home)
    here.project.resume()


def _saved(here: Company) -> set[str]:
    """What adoptions saved of the checkout, as commits on the base of their tickets."""
    refs = here.project.hub_git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
    return {line.split()[0] for line in refs if "/adopted/" in line}


@pytest.mark.parametrize("point", sampled([Point.ADOPT_BEFORE_DISPATCH, Point.ADOPT_AFTER_DISPATCH], 1))
def test_a_daemon_that_is_killed_in_an_adoption_makes_one_ticket(here: Company, point: Point):
    name = f"killed-{point.name.lower()}.txt"
    id = recorded(here, "Please begin.", "Begun.")
    here.project.repository.write({name: "mine\n"})
    here.squad.end()
    here.start({"LEGION_CRASH_AT": point.value})
    known = set(here.project.states())
    rest = script(here, 'say = "Nothing is left."')
    with pytest.raises(LegionError):
        adopt(here, id, text=f"rehearsal: {rest}")
    assert here.squad.process is not None
    assert here.squad.process.wait(PATIENCE) == -9
    here.start()
    made = set(here.project.states()) - known
    assert len(made) == (point is Point.ADOPT_AFTER_DISPATCH)
    ticket = made.pop() if made else adopt(here, id, text=f"rehearsal: {rest}")
    here.project.until_settled(ticket)
    assert here.project.landed(name) == "mine\n"
    (here.project.repository.root / name).unlink()


def test_what_cannot_be_adopted_is_one_sentence(here: Company, tmp_path: Path):
    with pytest.raises(LegionError, match=r"There is no conversation 'feed'; `legion conversations` lists them."):
        adopt(here, "feed")
    with pytest.raises(LegionError, match="is in no Legion project"):
        here.squad.client.adopt(AdoptConversation(cwd=str(tmp_path)))
