"""Scripts are read whole, and a mistake in one is named with its place."""

from __future__ import annotations

import pytest

from legion.rehearsal.script.parser import read, read_all
from legion.rehearsal.script.script import (
    BadScript,
    Drop,
    ScriptedCall,
    ScriptedLimit,
    ScriptedTrouble,
    ScriptedUsage,
    Step,
    Window,
)


def test_every_key_of_a_step_is_read(scripts, write):
    write(
        "all",
        """
        [capture]
        word = 'the word is (\\w+)'

        [[step]]
        expect = "go"
        think = "T"
        say = "S"
        calls = [{tool = "Bash", input = {command = "ls"}}, {tool = "Read"}]
        stop = "max_tokens"
        usage = {input = 1, output = 2, cache_read = 3, cache_write = 4}
        delay = 0.5
        slow = 1
        status = 429
        times = 2
        message = "M"
        headers = {"Retry-After" = 7}
        limit = {resets_in = 3600, utilization = 0.9, window = "7d"}
        attempt = 2

        [[step]]
        drop = "before"
        """,
    )
    script = read(scripts / "all.toml")
    assert script.captures == {"word": r"the word is (\w+)"}
    assert script.steps == (
        Step(
            expect="go",
            think="T",
            say="S",
            calls=(ScriptedCall(tool="Bash", input={"command": "ls"}), ScriptedCall(tool="Read")),
            stop="max_tokens",
            usage=ScriptedUsage(input=1, output=2, cache_read=3, cache_write=4),
            delay=0.5,
            slow=1.0,
            trouble=ScriptedTrouble(status=429, message="M", times=2),
            headers={"retry-after": "7"},
            limit=ScriptedLimit(resets_in=3600, utilization=0.9, window=Window.SEVEN_DAYS),
            attempt=2,
        ),
        Step(trouble=ScriptedTrouble(drop=Drop.BEFORE)),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "bad.toml: a script needs at least one"),
        ("step = 3", "bad.toml: step must be a list"),
        ("[[step", "bad.toml is not TOML"),
        ("[[step]]\n", "bad.toml, step 1: the step is empty"),
        ('[[step]]\nsay = "a"\n[[step]]\nsays = "b"', "step 2: says is not known here"),
        ("[[step]]\nsay = 3", "say must be a text"),
        ('[[step]]\ncall = {input = {}}', "a call needs the name of its tool"),
        ('[[step]]\ncall = {tool = "a"}\ncalls = []', "use call or calls, not both"),
        ('[[step]]\nsay = "a"\nstatus = 200', "status must be a whole number from 400 on"),
        ('[[step]]\nsay = "a"\nstatus = 529', "an error without `times` never lets the answer come"),
        ("[[step]]\nstatus = 529\ntimes = 1", "the step is empty"),
        ('[[step]]\ndrop = "mid"', "the step is empty"),
        ('[[step]]\nsay = "a"\ntimes = 1', "times and message belong to a status or a drop"),
        ('[[step]]\nsay = "a"\ndrop = "mid"\nstatus = 400\ntimes = 1', "use status or drop, not both"),
        ('[[step]]\ndrop = "late"', "'late' is not a valid Drop"),
        ('[[step]]\nsay = "a"\nexpect = "("', "'(' is not a regular expression"),
        ('[[step]]\nsay = "a"\nstop = "now"', "stop must be one of"),
        ('[[step]]\nsay = "a"\ndelay = -1', "delay must be a number from 0 on"),
        ('[[step]]\nsay = "a"\nusage = {in = 1}', "in is not known here"),
        ('[capture]\ncwd = "(a)"\n[[step]]\nsay = "a"', "the name cwd in [capture] is reserved"),
        ('[capture]\nword = "a"\n[[step]]\nsay = "a"', "word in [capture] must be a regular expression with one group"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(scripts, text, complaint):
    (scripts / "bad.toml").write_text(text)
    with pytest.raises(BadScript) as caught:
        read_all(scripts)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith("bad.toml")


def test_a_step_for_a_later_attempt_takes_the_place_of_those_before(scripts, write):
    write(
        "two",
        """
        [[step]]
        say = "first"
        [[step]]
        say = "second try"
        attempt = 3
        """,
    )
    script = read(scripts / "two.toml")
    reply = [[step.say for step in script.steps_of(attempt)] for attempt in (1, 2, 3, 4)]
    assert reply == [["first"], ["first"], ["second try"], ["second try"]]
