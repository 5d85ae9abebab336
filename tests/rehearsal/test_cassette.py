"""Cassettes: recorded answers become a script that gives the same answers."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from legion.rehearsal.play.cassette import RecordedRequest, cassette, to_toml
from legion.rehearsal.protocol.request import ApiPath
from legion.rehearsal.script import parser
from legion.rehearsal.script.script import ScriptedCall, ScriptedUsage, Step

TOOLS = [{"name": "Bash", "input_schema": {}}]
BRIEFING = "# Ticket 7: Write it\n\nPrimary working directory: /srv/tree"


def recorded(step: Step, *messages: tuple[str, str], tools: bool = True, agent: str = "") -> RecordedRequest:
    reply = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in messages]
    body = {"model": "m", "messages": reply, "tools": TOOLS if tools else []}
    return RecordedRequest(
        dialect=ApiPath.MESSAGES, conversation="c", agent=agent, body=json.dumps(body).encode(), step=step
    )


def steps(texts: dict[str, str], folder: Path, name: str = "it") -> tuple[Step, ...]:
    for script, text in texts.items():
        (folder / f"{script}.toml").write_text(text, "utf-8")
    return parser.read(folder / f"{name}.toml").steps


def test_each_turn_is_a_step_and_what_was_asked_again_counts_once(tmp_path):
    texts = cassette(
        "it",
        [
            recorded(Step(say="A title"), ("user", "title please"), tools=False),
            recorded(Step(say="lost on the way"), ("user", BRIEFING)),
            recorded(Step(say="one /srv/tree/a /srv/eve/b /srv/evelyn"), ("user", BRIEFING)),
            recorded(Step(say="two"), ("user", BRIEFING), ("assistant", "one"), ("user", "go on")),
            recorded(Step(), ("user", BRIEFING), ("assistant", "one"), ("user", "go on"), ("assistant", "two")),
        ],
        home="/srv/eve",
        ticket={"title": "Write it", "text": "as /srv/eve/x says. rehearsal: other", "base": ""},
    )
    played = steps(texts, tmp_path)
    assert [step.say for step in played] == ["one {cwd}/a /home/ada/b /srv/evelyn", "two", "(It said nothing.)"]
    assert 'text = "as /home/ada/x says."' in texts["it"]


def test_later_attempts_have_steps_of_their_own_and_going_on_adds_to_the_same(tmp_path):
    again = "This is attempt 2"
    first = (("user", BRIEFING), ("assistant", "one"))
    texts = cassette(
        "it",
        [
            recorded(Step(say="one"), ("user", BRIEFING)),
            recorded(Step(say="going on"), *first, ("user", BRIEFING)),
            recorded(Step(say="second try"), *first, ("user", BRIEFING), ("assistant", "going on"), ("user", again)),
        ],
        home="/srv/eve",
        ticket={},
    )
    assert [(step.say, step.attempt) for step in steps(texts, tmp_path)] == [
        ("one", 1), ("going on", 1), ("second try", 2),
    ]  # fmt: skip


def test_a_subagent_has_a_script_that_the_call_names(tmp_path):
    call = ScriptedCall(tool="Agent", input={"prompt": "Look at it.", "model": None})
    texts = cassette(
        "it",
        [
            recorded(Step(calls=(call,)), ("user", BRIEFING)),
            recorded(Step(say="I looked."), ("user", "<x>\nLook at it.\n</x>"), agent="a1"),
        ],
        home="/srv/eve",
        ticket={},
    )
    (step,) = steps(texts, tmp_path)
    assert step.calls[0].input == {"prompt": "Look at it.\n\nrehearsal: it-agent-1"}
    assert [one.say for one in steps(texts, tmp_path, "it-agent-1")] == ["I looked."]


def test_nothing_heard_is_no_cassette():
    assert cassette("it", [], home="/srv/eve", ticket={"title": "x"}) == {}


JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(TEXTS, TEXTS, st.dictionaries(st.text(), JSON, max_size=3), st.integers(0, 10**9))
def test_whatever_was_said_is_read_again_as_it_was(tmp_path_factory, say, think, outcome, used):
    step = Step(
        say=say,
        think=think,
        calls=(ScriptedCall(tool="T", input=outcome),),
        stop="max_tokens",
        usage=ScriptedUsage(input=used, output=1),
    )
    file = tmp_path_factory.mktemp("script") / "it.toml"
    file.write_bytes(to_toml([step]).encode())
    (read,) = parser.read(file).steps
    assert read == step
