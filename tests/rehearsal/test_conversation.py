"""The requested step is read from the conversation alone."""

from __future__ import annotations

import json

import pytest

from legion.rehearsal.play.conversation import part, position
from legion.rehearsal.protocol.request import IncomingRequest, read
from legion.rehearsal.script.script import ScriptedCall, Step
from tests.rehearsal.program import model, result, text_block, use, user

STEPS = (
    Step(say="I write.", calls=(ScriptedCall(tool="Write"), ScriptedCall(tool="Bash"))),
    Step(think="Hm."),
    Step(say="Done."),
)


def request(*messages: dict[str, object], system: str = "", **headers: str) -> IncomingRequest:
    facts = {"model": "m", "messages": messages, "system": [{"type": "text", "text": system}], "tools": [{}]}
    return read(headers, json.dumps(facts).encode())


def step_of(*messages: dict[str, object], system: str = "") -> int:
    return position(part(request(*messages, system=system)).since, STEPS)


BOTH_CALLS = model(text_block("I write."), use("Write", 1), use("Bash", 2))


def test_each_turn_of_the_model_is_a_step():
    talk = [user("rehearsal: a"), BOTH_CALLS, result("fine"), model({"type": "thinking", "thinking": "Hm."})]
    assert [step_of(*talk[:length]) for length in (1, 3, 4)] == [0, 1, 2]


def test_messages_of_one_side_in_a_row_are_one_turn():
    talk = [user("rehearsal: a"), model(text_block("I write."), use("Write", 1)), model(use("Bash", 2)), result("fine")]
    assert step_of(*talk) == 1


@pytest.mark.parametrize(
    "left", [[text_block("I write.")], [text_block("I write."), use("Write")], [use("Write"), use("Bash")]]
)
def test_a_turn_that_was_cut_off_before_its_calls_or_its_words_is_played_again(left):
    assert step_of(user("rehearsal: a"), model(*left), user("go on")) == 0


def test_a_turn_that_the_program_invents_is_no_step():
    talk = [
        user("rehearsal: a"),
        BOTH_CALLS,
        result("cut off"),
        model(text_block("No response requested.")),
        user("go on"),
    ]
    assert step_of(*talk) == 1


def test_the_last_marker_names_the_script_and_begins_it():
    talk = [user("rehearsal: a"), BOTH_CALLS, result("rehearsal: not-a-marker"), user("now rehearsal: b."), BOTH_CALLS]
    where = part(request(*talk, user("more")))
    assert (where.script, len(where.since)) == ("b", 2)


def test_a_marker_in_the_system_prompt_counts_from_the_beginning():
    where = part(request(user("hello"), model(text_block("x")), user("on"), system="rehearsal: a"))
    assert (where.script, where.facts, len(where.since)) == ("a", {"attempt": "1"}, 3)


def test_what_the_program_wraps_around_a_message_names_no_script():
    reminder = "<system-reminder>\nRecent commits: rehearsal: b\n</system-reminder>"
    where = part(request(user(f"{reminder}rehearsal: a{reminder}"), model(text_block("x")), user(reminder)))
    assert (where.script, len(where.since)) == ("a", 2)


def test_a_new_briefing_begins_the_same_script_anew_with_its_attempt():
    talk = [user("# Ticket 7: Say hello\n\nrehearsal: a"), BOTH_CALLS, result("fine")]
    where = part(request(*talk, user("# Ticket 7: Say hello\n\nThis is attempt 2; what you did is still there.")))
    assert (where.script, where.attempt, where.since) == ("a", 2, ())
    assert where.facts == {"attempt": "2", "ticket": "7", "title": "Say hello"}


def test_the_working_directory_is_read_from_what_the_program_says_about_it():
    outcome = (
        "<system-reminder>\n# Environment\n - Primary working directory: /some/where else\n - x\n</system-reminder>"
    )
    assert part(request(user(f"{outcome}rehearsal: a"))).facts["cwd"] == "/some/where else"


def test_what_came_before_is_words_and_results_of_tools():
    where = part(request(user("rehearsal: a"), BOTH_CALLS, result("fine"), user("and more")))
    assert where.before == "and more\nfine"
