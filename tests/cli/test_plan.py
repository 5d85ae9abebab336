"""Plan files: all or none, and the first mistake is named."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.cli.base.texts import short_title
from legion.cli.tickets.plan_file import read_plan
from legion.domain.errors import BadInput
from legion.wire.dispatch import NewTicket

WHOLE = """
[[ticket]]
key = "schema"
title = "Tables"
text = "Users and sessions."
context = "db/"
criteria = "make test passes"
plan = "Migrations first."
files = ["db/**"]
prove = ["make db-test"]
epic = "auth"
priority = 3
driver = "claude"
command = "agent"
model = "big"
max_attempts = 2

[[ticket]]
key = "all"
title = "All of it"
checkpoint = true
after = ["schema", 3]
"""


def test_a_whole_plan_becomes_tickets_with_every_field():
    first, second = read_plan(WHOLE, "plan.toml")
    assert first == NewTicket(
        key="schema",
        title="Tables",
        text="Users and sessions.",
        context="db/",
        criteria="make test passes",
        plan="Migrations first.",
        files=["db/**"],
        prove=["make db-test"],
        epic="auth",
        priority=3,
        driver="claude",
        command="agent",
        model="big",
        max_attempts=2,
    )
    assert (second.checkpoint, second.after, second.after_keys) == (True, [3], ["schema"])


def test_a_ticket_without_title_is_called_by_the_beginning_of_its_text():
    (ticket,) = read_plan('[[ticket]]\ntext = """\nA page to log in,\nwith everything that belongs to it."""', "p")
    assert ticket.title == "A page to log in, with everything that b…"


def test_a_single_name_may_stand_for_a_list():
    _, second = read_plan('[[ticket]]\nkey="a"\ntitle="A"\n[[ticket]]\ntitle="B"\nafter="a"', "p")
    assert second.after_keys == ["a"]


BAD_PLANS = [
    ("", "no [[ticket]]"),
    ("x = ", "not valid TOML"),
    ("ticket = 5", "no [[ticket]]"),
    ("ticket = [5]", "ticket number 1 is not a table"),
    ("ticket = []", "no [[ticket]]"),
    ("[settings]\na = 1", "`settings`"),
    ("[[ticket]]", "neither `title` nor `text`"),
    ('[[ticket]]\nkey = "a"\ntitle = " "', "ticket `a` has neither"),
    ('[[ticket]]\nkey = "login"\ntitel = "x"', "ticket `login` has no field `titel`; did you mean `title`?"),
    ('[[ticket]]\ntitle = "x"\nzzzzqqq = 1', "there are title, text"),
    ('[[ticket]]\nkey = "a"\ntitle = 5', "ticket `a`: `title` must be a text"),
    ('[[ticket]]\ntitle = "x"\nprove = "make"', "`prove` must be a list of texts"),
    ('[[ticket]]\ntitle = "x"\nfiles = [1]', "`files` must be a list of texts"),
    ('[[ticket]]\ntitle = "x"\npriority = true', "`priority` must be a whole number"),
    ('[[ticket]]\ntitle = "x"\nmax_attempts = 0', "`max_attempts` must be a whole number from 1 to 20, not 0."),
    ('[[ticket]]\ntitle = "x"\nmax_attempts = 21', "`max_attempts` must be a whole number from 1 to 20, not 21."),
    ('[[ticket]]\ntitle = "x"\npriority = 2000', "`priority` must be a whole number from -1000 to 1000, not 2,000."),
    (
        '[[ticket]]\ntitle = "x"\nbudget = nan',
        "`budget` must be a number of dollars above 0, at most 100,000, not nan.",
    ),
    ('[[ticket]]\ntitle = "x"\nreview = "never"', "`review` must be off, risky or always, not 'never'."),
    ('[[ticket]]\ntitle = "x"\nfiles = ["/x"]', "`files` has '/x', which starts with a slash"),
    ('[[ticket]]\ntitle = "x"\nprove = [" "]', "`prove` has ' ', which is empty."),
    ('[[ticket]]\ntitle = "x"\nlabels = ["a b"]', "`labels` has 'a b', which is no name"),
    (f'[[ticket]]\ntitle = "{"x" * 301}"', "`title` must be a text of at most 300 characters, not of 301."),
    ('[[ticket]]\ntitle = "x"\ncheckpoint = "yes"', "`checkpoint` must be true or false"),
    ('[[ticket]]\ntitle = "x"\nafter = [0]', "`after` must be a list"),
    ('[[ticket]]\ntitle = "x"\nafter = [1.5]', "`after` must be a list"),
    ('[[ticket]]\nkey="schema"\ntitle="x"\n[[ticket]]\ntitle="y"\nafter=["shema"]', "did you mean `schema`?"),
    ('[[ticket]]\ntitle="y"\nafter=["x"]', "no ticket of this plan has that key"),
    ('[[ticket]]\nkey="a"\ntitle="x"\n[[ticket]]\nkey="a"\ntitle="y"', "two tickets with the key `a`"),
    ('[[ticket]]\ntitle="x"\nafter_keys=["a"]', "no field `after_keys`"),
    ("a = " + "[" * 5000, "p "),
]


@pytest.mark.parametrize(("text", "said"), BAD_PLANS)
def test_a_bad_plan_gets_one_sentence(text, said):
    with pytest.raises(BadInput) as raised:
        read_plan(text, "p")
    assert said in raised.value.message
    assert "\n" not in raised.value.message


@given(st.text())
def test_no_text_at_all_can_do_more_than_be_refused(text: str):
    with contextlib.suppress(BadInput):
        read_plan(text, "p")


@pytest.mark.parametrize(
    ("text", "title"), [("Short", "Short"), ("two\nlines", "two lines"), ("x" * 50, "x" * 40 + "…")]
)
def test_short_titles(text, title):
    assert short_title(text) == title
