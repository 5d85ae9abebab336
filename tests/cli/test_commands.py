"""Every command: what it asks, what it writes where, how it ends."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from sqlalchemy import delete

from legion.domain.errors import BadInput, ChecksFailed, LegionError, NotAllowed, NotFound, Retryable, StateConflict
from legion.domain.tickets.ticket import Cause, State, TryAgain
from legion.store.board import tickets
from legion.store.database import schema
from legion.wire.dispatch import Dispatched
from legion.wire.ticket_pages import Diff
from tests.api.serving import serving
from tests.support.board import Board
from tests.support.repository import Repository

JSON_OF_EACH = [
    (["init"], "legion.project/1"),
    (["init", "--dry-run"], "legion.project/1"),
    (["trust"], "legion.done/1"),
    (["trust", "--show"], "legion.trustable/1"),
    (["team", "list"], "legion.teams/1"),
    (["team", "show", "qa_team"], "legion.team/1"),
    (["role", "list"], "legion.roles/1"),
    (["role", "show", "qa"], "legion.role/1"),
    (["team", "edit", "qa_team", "--from", "{files}/team.toml"], "legion.done/1"),
    (["role", "new", "critic", "--from", "{files}/role.toml"], "legion.done/1"),
    (["dispatch", "-t", "A", "Do it"], "legion.dispatched/1"),
    (["status"], "legion.status/1"),
    (["status", "--all"], "legion.status/1"),
    (["ticket", "1"], "legion.ticket/1"),
    (["ticket", "1", "--full"], "legion.ticket/1"),
    (["log", "1"], "legion.log/1"),
    (["diff", "1"], "legion.diff/1"),
    (["graph"], "legion.graph/1"),
    (["wait", "1"], "legion.wait/1"),
    (["stop", "2"], "legion.acted/1"),
    (["stop", "all"], "legion.acted/1"),
    (["retry", "3"], "legion.acted/1"),
    (["review", "1"], "legion.acted/1"),
    (["bounce", "6"], "legion.acted/1"),
    (["drop", "3"], "legion.acted/1"),
    (["drop", "--ended"], "legion.acted/1"),
    (["pause"], "legion.acted/1"),
    (["pause", "4"], "legion.acted/1"),
    (["resume"], "legion.acted/1"),
    (["resume", "5"], "legion.acted/1"),
    (["collect"], "legion.collected/1"),
    (["collect", "--dry-run"], "legion.collected/1"),
    (["projects"], "legion.projects/1"),
    (["worktrees"], "legion.worktrees/1"),
    (["config"], "legion.config/1"),
    (["config", "--explain"], "legion.config/1"),
    (["up"], "legion.daemon/1"),
    (["version"], "legion.version/1"),
    (["completion", "bash"], "legion.completion/1"),
]


@pytest.fixture
def some_tickets(board: Board, tmp_path: Path) -> None:
    """One in each state that some command needs, and files for those that read one."""
    board.put(1, "First", "done")
    board.put(2, "Second", "working", after=[1])
    board.put(3, "Third", "failed")
    board.put(4, "Fourth")
    board.put(5, "Fifth", "parked")
    board.put(6, "Sixth", "landing")
    board.run(1, "hello\n")
    (tmp_path / "team.toml").write_text('about = "a"\nroles = ["engineer"]\n')
    (tmp_path / "role.toml").write_text('about = "a"\npart = "advise"\nprompt = "b"\n')


@pytest.mark.parametrize(("words", "schema"), JSON_OF_EACH, ids=[" ".join(words) for words, _ in JSON_OF_EACH])
def test_each_command_answers_with_one_json_object(legion, some_tickets, tmp_path: Path, words, schema):
    ended = legion(*(word.format(files=tmp_path) for word in words), "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["schema"] == schema


@pytest.mark.parametrize(("words", "schema"), JSON_OF_EACH, ids=[" ".join(words) for words, _ in JSON_OF_EACH])
def test_each_command_answers_a_person_without_json_or_colours(
    legion, board: Board, some_tickets, tmp_path: Path, words, schema
):
    ended = legion(*(word.format(files=tmp_path) for word in words))
    assert ended.code == 0
    assert ended.out.strip()
    assert "legion." + "x" not in ended.out
    assert "\x1b" not in ended.out + ended.err
    assert schema not in ended.out


@pytest.mark.parametrize("json_wanted", [True, False])
def test_init_remove_answers_both_ways(legion, short_folder: Path, monkeypatch: pytest.MonkeyPatch, json_wanted):
    with serving(short_folder) as served:
        monkeypatch.setenv("LEGION_DATA_DIR", str(served.socket.parent))
        monkeypatch.chdir(served.board.cwd)
        ended = legion("init", "--remove", *(["--json"] if json_wanted else []))
    assert ended.code == 0
    assert ("legion.done/1" in ended.out) is json_wanted
    assert "shop" in ended.out


def test_common_options_also_stand_before_the_command(legion, board: Board):
    assert json.loads(legion("--json", "status").out)["schema"] == "legion.status/1"


EXITS = [
    (LegionError("It failed."), 1),
    (BadInput("Nonsense."), 2),
    (NotFound("Not there."), 3),
    (NotAllowed("No."), 4),
    (StateConflict("Too late."), 5),
    (ChecksFailed("Red."), 6),
    (Retryable("Later."), 75),
]


@pytest.mark.parametrize(("error", "code"), EXITS)
def test_errors_are_one_sentence_on_stderr_and_an_exit_code(legion, board: Board, error, code):
    board.callers.trouble = error
    ended = legion("status")
    assert (ended.code, ended.out, ended.err) == (code, "", f"{error.message}\n")


@pytest.mark.parametrize(("error", "code"), EXITS)
def test_errors_with_json_are_a_problem_on_stdout(legion, board: Board, error, code):
    board.callers.trouble = error
    ended = legion("status", "--json")
    assert (ended.code, ended.err) == (code, "")
    assert json.loads(ended.out) == {
        "schema": "legion.problem/1",
        "code": error.code,
        "message": error.message,
        "exit_code": code,
    }


BAD_WORDS: list[tuple[list[str], int, str]] = [
    (["nonsense"], 2, "no command `nonsense`"),
    (["statsu"], 2, "There is no command `statsu`; did you mean `legion status`?\n"),
    (["status", "--nope"], 2, "--nope"),
    (["status", "one", "extra"], 2, "extra"),
    (["status", "nobody"], 3, "Session not found: nobody"),
    (["ticket"], 2, "N"),
    (["ticket", "x"], 2, "`x` is no ticket number"),
    (["ticket", "0"], 2, "no ticket number"),
    (["ticket", "-1"], 2, "-1"),
    (["ticket", "9" * 30], 2, "no ticket number"),
    (["ticket", "٣"], 2, "no ticket number"),
    (["ticket", "99"], 3, "no ticket 99"),
    (["log", "99"], 3, "no ticket 99"),
    (["log", "1", "--run", "7"], 3, "no run 7"),
    (["log", "1", "--run", "zero"], 2, "zero"),
    (["watch", "99"], 3, "no ticket 99"),
    (["wait", "99"], 3, "no ticket 99"),
    (["wait", "1", "--all"], 2, "exclude each other"),
    (["wait", "--timeout", "soon"], 2, "soon"),
    (["wait", "--timeout", "nan"], 2, "`nan` is no number of seconds"),
    (["stop"], 2, "|all"),
    (["stop", "some"], 2, "`some` is no ticket number"),
    (["stop", "1"], 5, "cannot be stopped now"),
    (["dispatch"], 2, "Say what you want"),
    (["dispatch", ""], 2, "empty"),
    (["dispatch", "-t", "A", "--after", "1,x", "B"], 2, "`x` is no ticket number"),
    (["dispatch", "-t", "A", "--after", "77", "B"], 2, "no ticket 77"),
    (["dispatch", "-t", "A", "--max-attempts", "0", "B"], 2, "0"),
    (["dispatch", "-t", "A", "--max-attempts", "21", "B"], 2, "must be a whole number from 1 to 20, not 21"),
    (["dispatch", "-t", "A", "--priority", "high", "B"], 2, "must be a whole number from -1000 to 1000, not 'high'"),
    (["dispatch", "a", "b"], 2, "TEXT must be one argument; put it in quotes"),
    (["dispatch", "1", "a", "b"], 2, "TEXT must be one argument; put it in quotes"),
    (["dispatch", "1000001", "a"], 2, "WORKER must be a whole number from 0 to 1000000"),
    (["dispatch", "-t", "A", "--budget", "0", "B"], 2, "--budget': must be a number of dollars above 0"),
    (["dispatch", "-t", "A", "--review", "never", "B"], 2, "never"),
    (["dispatch", "--from", "none.toml"], 3, "no file none.toml"),
    (["dispatch", "--from", "."], 2, "folder"),
    (["dispatch", "--from", "none.toml", "text"], 2, "remove TEXT"),
    (["dispatch", "--from", "none.toml", "--epic", "e"], 2, "remove TEXT"),
    (["init", "/no/such/folder"], 3, "no folder"),
    (["init", "--dry-run", "--remove"], 2, "exclude each other"),
    (["graph", "--dot", "--mermaid"], 2, "Choose"),
    (["completion", "tcsh"], 2, "tcsh"),
    (["completion"], 2, "SHELL"),
    (["serve", "--port", "99999999"], 2, "99999999"),
    (["status", "--data-dir"], 2, "--data-dir"),
]


@pytest.mark.parametrize(("words", "code", "said"), BAD_WORDS, ids=[" ".join(words)[:40] for words, _, _ in BAD_WORDS])
def test_bad_input_gets_one_sentence_and_changes_nothing(legion, board: Board, words, code, said):
    board.put(1, state="done")
    before = board.tickets
    ended = legion(*words)
    assert ended.code == code
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert board.tickets == before


@pytest.mark.parametrize(("words", "code", "said"), BAD_WORDS, ids=[" ".join(words)[:40] for words, _, _ in BAD_WORDS])
def test_bad_input_with_json_is_a_problem(legion, board: Board, words, code, said):
    board.put(1, state="done")
    ended = legion("--json", *words)
    problem = json.loads(ended.out)
    assert (problem["schema"], problem["exit_code"], ended.code) == ("legion.problem/1", code, code)
    assert ended.err == ""


def test_dispatch_prints_exactly_one_line_per_ticket_and_talks_elsewhere(legion, board: Board):
    with board.store.write() as tx:
        tx.execute(delete(schema.trusted))
    ended = legion("dispatch", "-t", "A", "-c", "here", "Do it")
    board.trust()
    assert ended.out == "Ticket ID: 1\n"
    assert ended.err.startswith("Note: ")
    assert "legion trust" in ended.err


def test_dispatch_hands_everything_over(legion, board: Board):
    board.put(1)
    board.put(3)
    words = ["-t", "-x 'quoted'", "-c", "C", "-k", "K", "-p", "P", "--after", "1,3", "--after", "#1", "--files", "a/**"]
    words += [
        "--files",
        "b",
        "--prove",
        "make x",
        "--epic",
        "E",
        "--priority",
        "5",
        "--driver",
        "d",
        "--command",
        "cmd",
    ]
    words += ["--model", "m", "--max-attempts", "2", "--checkpoint", "--", "-the text"]
    board.callers.instead = {"dispatch": Dispatched(ids=[4])}
    assert legion("dispatch", *words).code == 0
    sent = board.callers.sent[-1]["wanted"]
    (ticket,) = sent.tickets
    assert (ticket.title, ticket.text, ticket.context, ticket.criteria) == ("-x 'quoted'", "-the text", "C", "K")
    assert (ticket.plan, ticket.after, ticket.files, ticket.prove) == ("P", [1, 3], ["a/**", "b"], ["make x"])
    assert (ticket.epic, ticket.priority, ticket.driver, ticket.command) == ("E", 5, "d", "cmd")
    assert (ticket.model, ticket.max_attempts, ticket.checkpoint) == ("m", 2, True)
    assert len(sent.request) == 32


def test_dispatch_takes_a_worker_and_short_after_as_legion_cc_has_them(legion, board: Board):
    board.put(1)
    board.put(3)
    board.callers.instead = {"dispatch": Dispatched(ids=[4])}
    words = ["2", "-t", "A", "-c", "C", "-k", "K", "-a", "1,3", "Do it"]
    assert legion("dispatch", *words).out == "Ticket ID: 4\n"
    assert legion("dispatch", "7").code == 0
    (ticket,), (plain,) = (sent["wanted"].tickets for sent in board.callers.sent)
    assert (ticket.worker_id, ticket.after, ticket.text) == (2, [1, 3], "Do it")
    assert (plain.worker_id, plain.text) == (None, "7")


def test_a_plan_file_makes_its_tickets_in_order(legion, board: Board, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('[[ticket]]\nkey="a"\ntitle="A"\n[[ticket]]\nkey="b"\ntitle="B"\nafter=["a"]\n')
    assert legion("dispatch", "--from", str(plan)).out == "Ticket ID: 1\nTicket ID: 2\n"
    assert board.tickets[2].spec.after == (1,)


def test_a_plan_with_one_bad_ticket_makes_none(legion, board: Board, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('[[ticket]]\nkey="a"\ntitle="A"\n[[ticket]]\nkey="b"\ntitle="B"\nprove="x"\n')
    ended = legion("dispatch", "--from", str(plan))
    assert (ended.code, board.tickets) == (2, {})
    assert "ticket `b`: `prove`" in ended.err


def test_bounce_hands_the_words_over(legion, program, board: Board):
    board.put(1, state="reviewing")
    assert legion("bounce", "1", "Keep the API.").code == 0
    assert "Keep the API." in board.tickets[1].feedback
    board.put(2, state="reviewing")
    assert program("bounce", "2", "-", stdin=b"From stdin.").code == 0
    assert "From stdin." in board.tickets[2].feedback


def test_retry_hands_the_feedback_over(legion, board: Board):
    board.put(1, state="failed")
    assert legion("retry", "1", "--feedback", "Keep the API.").code == 0
    assert board.tickets[1].state is State.QUEUED
    assert "Keep the API." in board.tickets[1].feedback


def test_doctor_ends_with_one_when_something_is_wrong(legion, short_folder: Path, monkeypatch: pytest.MonkeyPatch):
    why = f"none works, /{'home/' * 20}bwrap is missing"
    with serving(short_folder, sandbox=why) as served:
        monkeypatch.setenv("LEGION_DATA_DIR", str(served.socket.parent))
        monkeypatch.chdir(served.board.cwd)
        ended = legion("doctor")
        answer = json.loads(legion("doctor", "--json").out)
    assert (ended.code, answer["schema"]) == (1, "legion.doctor/1")
    assert "\x1b" not in ended.out + ended.err
    shown = "".join(ended.out.split())
    # A place that was cut short would be of no use.
    assert why.replace(" ", "") in shown
    for one in answer["findings"]:
        assert one["detail"].replace(" ", "") in shown
        assert one["ok"] or one["advice"].replace(" ", "") in shown


@pytest.mark.parametrize(
    ("states", "code"),
    [(["done", "done"], 0), (["done", "failed"], 1), (["done", "stopped"], 1), (["done", "parked"], 1), ([], 0)],
)
def test_wait_tells_how_it_went_by_its_exit_code(legion, board: Board, states, code):
    for id, state in enumerate(states, 1):
        board.put(id, state=state)
    assert legion("wait", *(str(id) for id in board.tickets)).code == code


def test_wait_ends_with_six_when_a_check_said_no_whatever_the_reason_is_called(legion, board: Board):
    board.put(1, state="done")
    board.put(2, state="failed", reason="gave up", cause=Cause.CHECKS)
    assert legion("wait", "1", "2").code == 6
    board.put(3, state="failed", reason="the agent's program failed (it said: checks failed)", cause=Cause.ATTEMPT)
    assert legion("wait", "1", "3").code == 1


def test_wait_gives_up_in_time(legion, board: Board):
    board.put(1, "Slow one", "working")
    ended = legion("wait", "1", "--timeout", "0.05")
    assert ended.code == 75
    assert "#1" in ended.out
    assert "Waiting for 1 ticket" in ended.err


def test_a_log_in_a_pipe_is_byte_for_byte(legion, board: Board):
    text = "\x1b[31mred\x1b[0m\r\nno newline at the end"
    board.put(1, state="done")
    board.run(1, text)
    assert legion("log", "1").out == text


def test_a_diff_in_a_pipe_is_byte_for_byte(legion, board: Board):
    board.put(1, state="landing")
    assert legion("diff", "1").out.rstrip() == board.repository.git("diff", board.base, board.change)


def test_an_empty_diff_is_said_and_not_shown(legion, board: Board):
    board.callers.instead = {"diff": Diff(ticket=1, base=board.base, head=board.base, text="", live=False)}
    ended = legion("diff", "1")
    assert (ended.code, ended.out, ended.err) == (0, "", "The ticket has no change.\n")


def test_the_diff_of_an_agent_at_work_says_so(legion, board: Board):
    text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"
    board.callers.instead = {"diff": Diff(ticket=1, base=board.base, head=board.change, text=text, live=True)}
    ended = legion("diff", "1")
    assert ended.out == text
    assert "still working" in ended.err


def test_the_log_of_a_run_without_output_is_still_json(legion, board: Board):
    board.put(1, state="done")
    board.run(1)
    ended = legion("log", "1", "--json")
    assert json.loads(ended.out)["text"] == ""


def test_the_log_of_a_checkpoint_says_that_nobody_works_on_it(legion, board: Board):
    board.put(1, checkpoint=True, command="")
    ended = legion("log", "1")
    assert (ended.code, ended.err) == (0, "Ticket 1 is a checkpoint: no agent works on it.\n")


@pytest.mark.parametrize("words", [["status"], ["ticket", "1"]])
def test_a_ticket_that_was_sent_back_says_why_and_what_it_waits_for(legion, board: Board, words):
    board.put(1, state="working")
    with board.store.write() as tx:
        tickets.move(tx, 1, TryAgain("checks failed: `make test`", "", cause=Cause.CHECKS))
    (line,) = board.service.status(board.cwd).tickets
    assert line.doing
    shown = legion(*words).out.partition("History")[0]
    assert shown.count("checks failed: `make test`") == 1
    assert shown.count(line.doing) == 1


def test_init_dry_run_prints_the_file_and_nothing_else_on_stdout(legion, tmp_path: Path):
    fresh = Repository(tmp_path / "fresh")
    fresh.git("rm", "--quiet", "legion.toml")
    fresh.commit("without", {"Makefile": "test:\n\ttrue\n"})
    tomllib.loads(legion("init", "--dry-run", str(fresh.root)).out)


def test_the_graph_for_other_programs_cannot_be_broken_by_a_title(legion, board: Board):
    board.put(1, 'say "hi" \\ <b>')
    board.put(2, "next", after=[1])
    dot = legion("graph", "--dot").out
    assert """1 [label="#1 say 'hi' / <b> (queued)", style=bold];""" in dot
    assert "1 -> 2;" in dot
    mermaid = legion("graph", "--mermaid").out
    assert """t1["#35;1 say 'hi' / #lt;b#gt; (queued)"]""" in mermaid
    assert "t1 --> t2" in mermaid


HOSTILE = "\x1b]0;owned\x07\x1b[2J evil\n\u202e title 🎉" + "x" * 1_000_000


@pytest.mark.parametrize("words", [["status"], ["ticket", "1"], ["graph"], ["wait", "1"], ["graph", "--dot"]])
def test_hostile_titles_are_shown_harmless_and_short(legion, board: Board, words):
    board.put(1, HOSTILE, "failed", reason=HOSTILE, epic=HOSTILE, text=HOSTILE)
    ended = legion(*words)
    assert ended.code == (1 if words[0] == "wait" else 0)
    assert "evil" in ended.out
    assert len(ended.out) < 10_000
    assert not any(letter in ended.out for letter in "\x1b\x07\u202e")


def test_without_arguments_the_help_is_shown(legion):
    ended = legion()
    assert ended.code == 0
    assert "legion help all" in ended.out
    assert "dispatch" in ended.out
