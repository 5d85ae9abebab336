"""Forms: text becomes values with the wire's own rules; drafts outlive the UI."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.tui.drafts import Drafts
from legion.tui.views.form_fields import HIRE_FIELDS, ticket_fields, values, with_title
from legion.wire.dispatch import TICKET_FIELDS

FIELDS = {field.name: field for field in ticket_fields(every=True)}


def test_the_long_form_has_every_field_of_dispatch_and_the_short_one_the_usual():
    assert set(FIELDS) == set(TICKET_FIELDS) - {"key", "worker_id"}
    assert [field.name for field in ticket_fields(every=False)] == [
        "title",
        "text",
        "context",
        "criteria",
        "after",
        "prove",
    ]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("title", "A title", "A title"),
        ("after", "#3, 5 7", [3, 5, 7]),
        ("prove", "make test\n\n make lint ", ["make test", "make lint"]),
        ("priority", " 5 ", 5),
        ("budget", "$2.50", 2.5),
        ("ask", "yes", True),
    ],
)
def test_a_text_becomes_the_value_of_its_field(name: str, text: str, value: object):
    assert values([FIELDS[name]], {name: text}) == {name: value}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("after", "first", "after must be numbers of tickets, such as 3, 5."),
        ("priority", "high", "priority must be a whole number."),
        ("priority", "5000", "priority must be a whole number from -1000 to 1000, not 5,000."),
        ("budget", "free", "budget must be a number of dollars."),
        ("title", "x" * 301, "title must be a text of at most 300 characters, not of 301."),
        ("labels", "not a label", "which is no name of at most 40 letters"),
    ],
)
def test_what_cannot_be_sent_is_explained_with_the_rule_of_the_field(name: str, text: str, sentence: str):
    assert sentence in (FIELDS[name].fault(text) or "")
    with pytest.raises(ValueError, match=name):
        values([FIELDS[name]], {name: text})


def test_fields_that_were_left_empty_are_not_sent():
    assert values(list(FIELDS.values()), {"title": "A", "text": " ", "ask": ""}) == {"title": "A"}
    hired = {"task": "Lead.", "driver": "codex", "budget": "20"}
    assert values(HIRE_FIELDS, hired) == {**hired, "budget": 20.0}


def test_a_ticket_without_a_title_gets_the_first_letters_of_its_text():
    assert with_title({"text": "Add a\nlogin page"})["title"] == "Add a login page"
    assert with_title({"text": "x" * 60})["title"] == "x" * 40 + "…"
    with pytest.raises(ValueError, match="Write a title"):
        with_title({})


def test_drafts_outlive_the_ui_and_sent_ones_do_not(tmp_path: Path):
    file = tmp_path / "tui.json"
    drafts = Drafts(file)
    drafts.put("form.ticket.title", "Half a ti")
    drafts.put("message.3", "wait")
    again = Drafts(file)
    assert again.of("form.ticket.") == {"title": "Half a ti"}
    again.remove("form.ticket.")
    again.put("message.3", "")
    assert Drafts(file).of("") == {}
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "[1]", '{"a": 1, "b": "text"}', "{half"])
def test_a_file_that_makes_no_sense_counts_as_empty(tmp_path: Path, content: str):
    (tmp_path / "tui.json").write_text(content)
    assert Drafts(tmp_path / "tui.json").of("") in ({}, {"b": "text"})


def test_a_folder_that_cannot_be_written_costs_only_the_memory(tmp_path: Path):
    drafts = Drafts(tmp_path / "missing" / "tui.json")
    drafts.put("a", "b")
    assert drafts.get("a") == "b"
