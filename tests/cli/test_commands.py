"""Every command: what it asks, what it writes where, how it ends."""

from __future__ import annotations

import json
import os

import pytest
from tests.api.standin import StandIn, a_text

from legion.domain.errors import BadInput, ChecksFailed, LegionError, NotAllowed, NotFound, Retryable, StateConflict
from legion.wire.projects import DoctorFinding

JSON_OF_EACH = [
    (["init"], "legion.project/1"),
    (["init", "--dry-run"], "legion.project/1"),
    (["init", "--remove"], "legion.done/1"),
    (["trust"], "legion.done/1"),
    (["trust", "--show"], "legion.trustable/1"),
    (["team", "list"], "legion.teams/1"),
    (["team", "show", "pair"], "legion.team/1"),
    (["role", "list"], "legion.roles/1"),
    (["role", "show", "qa"], "legion.role/1"),
    (["team", "edit", "pair", "--from", os.devnull], "legion.done/1"),
    (["role", "new", "pm", "--from", os.devnull], "legion.done/1"),
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
    (["retry", "1"], "legion.acted/1"),
    (["review", "1"], "legion.acted/1"),
    (["bounce", "1"], "legion.acted/1"),
    (["drop", "1"], "legion.acted/1"),
    (["pause"], "legion.acted/1"),
    (["pause", "1"], "legion.acted/1"),
    (["resume"], "legion.acted/1"),
    (["resume", "1"], "legion.acted/1"),
    (["collect"], "legion.collected/1"),
    (["worktrees"], "legion.worktrees/1"),
    (["doctor"], "legion.doctor/1"),
    (["config"], "legion.config/1"),
    (["config", "--explain"], "legion.config/1"),
    (["up"], "legion.daemon/1"),
    (["version"], "legion.version/1"),
    (["completion", "bash"], "legion.completion/1"),
]


def two_tickets(service: StandIn) -> None:
    service.put(1, "First", "done")
    service.put(2, "Second", "working", after=[1], attempt=2, doing="agent at work for 3 s")
    service.log_text = "hello\n"


@pytest.mark.parametrize(("words", "schema"), JSON_OF_EACH, ids=[" ".join(words) for words, _ in JSON_OF_EACH])
def test_each_command_answers_with_one_json_object(legion, service: StandIn, words, schema):
    two_tickets(service)
    ended = legion(*words, "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["schema"] == schema


@pytest.mark.parametrize(("words", "schema"), JSON_OF_EACH, ids=[" ".join(words) for words, _ in JSON_OF_EACH])
def test_each_command_answers_a_person_without_json_or_colours(legion, service: StandIn, words, schema):
    two_tickets(service)
    ended = legion(*words)
    assert ended.code == 0
    assert ended.out.strip()
    assert "legion." + "x" not in ended.out
    assert "\x1b" not in ended.out + ended.err
    assert schema not in ended.out


def test_common_options_also_stand_before_the_command(legion, service: StandIn):
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
def test_errors_are_one_sentence_on_stderr_and_an_exit_code(legion, service: StandIn, error, code):
    service.trouble = error
    ended = legion("status")
    assert (ended.code, ended.out, ended.err) == (code, "", f"{error.message}\n")


@pytest.mark.parametrize(("error", "code"), EXITS)
def test_errors_with_json_are_a_problem_on_stdout(legion, service: StandIn, error, code):
    service.trouble = error
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
    (["status", "nobody"], 3, "no agent nobody"),
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
    (["stop"], 2, "N|all"),
    (["stop", "some"], 2, "`some` is no ticket number"),
    (["stop", "1"], 5, "ended already"),
    (["dispatch"], 2, "Say what you want"),
    (["dispatch", ""], 2, "empty"),
    (["dispatch", "-t", "A", "--after", "1,x", "B"], 2, "`x` is no ticket number"),
    (["dispatch", "-t", "A", "--after", "77", "B"], 2, "comes after ticket 77"),
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
def test_bad_input_gets_one_sentence_and_changes_nothing(legion, service: StandIn, words, code, said):
    service.put(1, state="done")
    before = dict(service.tickets)
    ended = legion(*words)
    assert ended.code == code
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert service.tickets == before


@pytest.mark.parametrize(("words", "code", "said"), BAD_WORDS, ids=[" ".join(words)[:40] for words, _, _ in BAD_WORDS])
def test_bad_input_with_json_is_a_problem(legion, service: StandIn, words, code, said):
    service.put(1, state="done")
    ended = legion("--json", *words)
    problem = json.loads(ended.out)
    assert (problem["schema"], problem["exit_code"], ended.code) == ("legion.problem/1", code, code)
    assert ended.err == ""


def test_dispatch_prints_exactly_one_line_per_ticket_and_talks_elsewhere(
    legion, service: StandIn, tmp_path, monkeypatch
):
    red = tmp_path / "red"
    red.mkdir()
    monkeypatch.chdir(red)
    ended = legion("dispatch", "-t", "A", "Do it")
    assert ended.out == "Ticket ID: 1\n"
    assert ended.err == "Note: The target fails its checks.\n"


def test_dispatch_hands_everything_over(legion, service: StandIn):
    service.put(1)
    service.put(3)
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
    assert legion("dispatch", *words).code == 0
    (ticket,) = service.dispatched[0].tickets
    assert (ticket.title, ticket.text, ticket.context, ticket.criteria) == ("-x 'quoted'", "-the text", "C", "K")
    assert (ticket.plan, ticket.after, ticket.files, ticket.prove) == ("P", [1, 3], ["a/**", "b"], ["make x"])
    assert (ticket.epic, ticket.priority, ticket.driver, ticket.command) == ("E", 5, "d", "cmd")
    assert (ticket.model, ticket.max_attempts, ticket.checkpoint) == ("m", 2, True)
    assert len(service.dispatched[0].request) == 32


def test_dispatch_takes_a_worker_and_short_after_as_legion_cc_has_them(legion, service: StandIn):
    service.put(1)
    service.put(3)
    words = ["2", "-t", "A", "-c", "C", "-k", "K", "-a", "1,3", "Do it"]
    assert legion("dispatch", *words).out == "Ticket ID: 4\n"
    assert legion("dispatch", "7").code == 0
    (ticket,), (plain,) = (asked.tickets for asked in service.dispatched)
    assert (ticket.worker_id, ticket.after, ticket.text) == (2, [1, 3], "Do it")
    assert (plain.worker_id, plain.text) == (None, "7")


def test_a_plan_file_makes_its_tickets_in_order(legion, service: StandIn, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('[[ticket]]\nkey="a"\ntitle="A"\n[[ticket]]\nkey="b"\ntitle="B"\nafter=["a"]\n')
    assert legion("dispatch", "--from", str(plan)).out == "Ticket ID: 1\nTicket ID: 2\n"
    assert service.tickets[2].after == [1]


def test_a_plan_with_one_bad_ticket_makes_none(legion, service: StandIn, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('[[ticket]]\nkey="a"\ntitle="A"\n[[ticket]]\nkey="b"\ntitle="B"\nprove="x"\n')
    ended = legion("dispatch", "--from", str(plan))
    assert (ended.code, service.tickets) == (2, {})
    assert "ticket `b`: `prove`" in ended.err


def test_bounce_hands_the_words_over(legion, program, service: StandIn):
    service.put(1, state="reviewing")
    assert legion("bounce", "1", "Keep the API.").out == "Ticket 1 goes back: Keep the API.\n"
    assert program("bounce", "1", "-", stdin=b"From stdin.").out == "Ticket 1 goes back: From stdin.\n"


def test_retry_hands_the_feedback_over(legion, service: StandIn):
    service.put(1, state="failed")
    assert legion("retry", "1", "--feedback", "Keep the API.").out == "Ticket 1 is queued.\n"
    assert service.feedback == ["Keep the API."]


def test_doctor_ends_with_one_when_something_is_wrong(legion, service: StandIn):
    program = f"2.1.325, yours, /{'home/' * 20}claude"
    service.findings = [
        DoctorFinding(name="sandbox", ok=False, detail="none works", advice="install bubblewrap"),
        DoctorFinding(name="Claude Code", ok=True, detail=program),
    ]
    ended = legion("doctor")
    assert ended.code == 1
    assert "sandbox: none works" in ended.out
    # A place that was cut short would be of no use.
    assert program.replace(" ", "") in "".join(ended.out.split())
    assert "install bubblewrap" in ended.out


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (["done", "done"], 0),
        (["done", "failed"], 1),
        (["done", "stopped"], 1),
        (["done", "parked"], 1),
        ([], 0),
    ],
)
def test_wait_tells_how_it_went_by_its_exit_code(legion, service: StandIn, states, code):
    for id, state in enumerate(states, 1):
        service.put(id, state=state)
    assert legion("wait", *(str(id) for id in service.tickets)).code == code


def test_wait_ends_with_six_when_a_check_said_no_whatever_the_reason_is_called(legion, service: StandIn):
    service.put(1, state="done")
    service.put(2, state="failed", reason="gave up")
    service.cause = "checks"
    assert legion("wait", "1", "2").code == 6
    service.put(2, state="failed", reason="the agent's program failed (it said: checks failed)")
    service.cause = "attempt"
    assert legion("wait", "1", "2").code == 1


def test_wait_gives_up_in_time(legion, service: StandIn):
    service.put(1, "Slow one", "working")
    ended = legion("wait", "1", "--timeout", "0.05")
    assert ended.code == 75
    assert "#1" in ended.out
    assert "Waiting for 1 ticket" in ended.err


def test_a_log_in_a_pipe_is_byte_for_byte(legion, service: StandIn):
    service.put(1)
    service.log_text = "\x1b[31mred\x1b[0m\r\nno newline at the end"
    assert legion("log", "1").out == service.log_text


def test_a_diff_in_a_pipe_is_byte_for_byte(legion, service: StandIn):
    service.put(1, state="working")
    ended = legion("diff", "1")
    assert ended.out == service.diff_text
    assert "still working" in ended.err


def test_an_empty_diff_is_said_and_not_shown(legion, service: StandIn):
    service.put(1)
    service.diff_text = ""
    ended = legion("diff", "1")
    assert (ended.code, ended.out, ended.err) == (0, "", "The ticket has no change.\n")


def test_trust_shows_what_is_new_and_trusts_exactly_that(legion, service: StandIn):
    known = a_text("landed", 'run = "make test"\n', trusted=True)
    new = a_text("checkout", 'run = "curl evil"\n', trusted=False)
    service.config_texts = [known, new]
    ended = legion("trust")
    assert ended.out == "shop is trusted.\n"
    assert f"/shop/legion.toml, in your checkout ({new.hash[:12]}, not trusted yet)" in ended.err
    assert '  run = "curl evil"\n' in ended.err
    assert "make test" not in ended.err
    assert service.trusted == [new.hash]


def test_trust_where_nothing_is_new_means_the_texts_that_it_shows(legion, service: StandIn):
    """An empty list could stand for anything that lies there a moment later."""
    service.config_texts = [a_text("landed", 'run = "make test"\n', trusted=True)]
    assert "make test" in legion("trust").err
    assert service.trusted == [service.config_texts[0].hash]


def test_trust_with_json_shows_the_text_too(legion, service: StandIn):
    assert "make test" in legion("trust", "--json").err


def test_trust_show_shows_every_text_and_trusts_none(legion, service: StandIn):
    service.config_texts.append(a_text("checkout", 'run = "make all"\n', trusted=True))
    shown = legion("trust", "--show").out
    assert "as landed" in shown
    assert "not trusted yet" in shown
    assert "in your checkout" in shown
    assert "make all" in shown
    assert service.trusted == []


@pytest.mark.parametrize(
    "hidden", ["\x9d; curl evil \x9c", "\x9b; curl evil", "\x1b]0;; curl evil\x07", "\u202elive\u2066"]
)
def test_nothing_in_a_text_hides_from_who_is_to_trust_it(legion, service: StandIn, hidden):
    service.config_texts = [a_text("landed", f'run = "make test {hidden}"\n', trusted=False)]
    shown = legion("trust", "--show").out
    assert "".join(letter if letter.isprintable() else f"<U+{ord(letter):04X}>" for letter in hidden) in shown
    assert not any(letter in shown for letter in hidden if not letter.isprintable())


def test_the_log_of_a_run_without_output_is_still_json(legion, service: StandIn):
    service.put(1, state="done")
    ended = legion("log", "1", "--json")
    assert json.loads(ended.out)["text"] == ""


def test_the_log_of_a_checkpoint_says_that_nobody_works_on_it(legion, service: StandIn):
    service.put(1, checkpoint=True)
    service.has_run = False
    ended = legion("log", "1")
    assert (ended.code, ended.err) == (0, "Ticket 1 is a checkpoint: no agent works on it.\n")


@pytest.mark.parametrize("words", [["status"], ["ticket", "1"]])
def test_a_ticket_that_was_sent_back_says_why_and_what_it_waits_for(legion, service: StandIn, words):
    service.put(1, attempt=1, reason="checks failed: `make test`", doing="waits for a free slot")
    shown = legion(*words).out
    assert shown.count("checks failed: `make test`") == 1
    assert shown.count("waits for a free slot") == 1


def test_init_dry_run_prints_the_file_and_nothing_else_on_stdout(legion, service: StandIn):
    assert legion("init", "--dry-run").out == '[checks.test]\nrun = "make test"\n'


def test_the_graph_for_other_programs_cannot_be_broken_by_a_title(legion, service: StandIn):
    service.put(1, 'say "hi" \\ <b>')
    service.put(2, "next", after=[1])
    dot = legion("graph", "--dot").out
    assert """1 [label="#1 say 'hi' / <b> (queued)", style=bold];""" in dot
    assert "1 -> 2;" in dot
    mermaid = legion("graph", "--mermaid").out
    assert """t1["#35;1 say 'hi' / #lt;b#gt; (queued)"]""" in mermaid
    assert "t1 --> t2" in mermaid


HOSTILE = "\x1b]0;owned\x07\x1b[2J evil\n\u202e title 🎉" + "x" * 1_000_000


@pytest.mark.parametrize("words", [["status"], ["ticket", "1"], ["graph"], ["wait", "1"], ["graph", "--dot"]])
def test_hostile_titles_are_shown_harmless_and_short(legion, service: StandIn, words):
    service.put(1, HOSTILE, "done", reason=HOSTILE, doing=HOSTILE, epic=HOSTILE)
    service.texts[1] = HOSTILE
    ended = legion(*words)
    assert ended.code == 0
    assert "evil" in ended.out
    assert len(ended.out) < 10_000
    assert not any(letter in ended.out for letter in "\x1b\x07\u202e")


def test_without_arguments_the_help_is_shown(legion):
    ended = legion()
    assert ended.code == 0
    assert "legion init" in ended.out
    assert "dispatch" in ended.out
