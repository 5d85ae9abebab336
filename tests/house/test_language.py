"""The language rules that a pattern can check: plain words in source and documents, one meaning for each class name.

`python -m tests.house.test_language` prints what breaks the rules now, as the table of debts below.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.support.codebase import place, project_files, python_files, text_of

PHRASES = {
    "whom": (r"whom|whoever|whomever", "name the part: the ticket, the agent, the caller"),
    "nobody": (r"(?:some|no|any|every)body", "name the part, or write `no reviewer`, `any agent`, `every client`"),
    "anew": (r"anew", "again"),
    "mend": (r"mend(?:s|ed|ing)?", "fix, fixes, fixed"),
    "is told": (r"(?:is|are|was|were|be|been|being|gets?)\s+told", "gets a message, is recorded, is reported"),
    "hears": (r"hears?", "receives, reads"),
    "gets on": (r"(?:does\s+not|do\s+not|whether\s+\w+|again|it|they)\s+gets?\s+on", "makes progress"),
    "no X any more": (r"(?:is|are)\s+no\s+\w+\s+any\s+more", "is no longer"),
    "at the moment": (r"at\s+the\s+moment(?!\s+(?:of|when))", "now, or nothing"),
    "in hand": (r"in\s+hand", "started"),
    "beside": (r"beside", "next to, in parallel with, as well as"),
    "goes on": (r"(?:goes|went)\s+on", "continues, resumes"),
    "lets go": (r"lets?\s+(?:\w+\s+)?go(?!\s+(?:on|first|ahead))|letting\s+(?:\w+\s+)?go", "release, revoke"),
    "lies": (r"lies", "is, is stored"),
    "without a word": (r"without\s+a\s+word", "and reports nothing, without a message"),
    "begins": (r"(?:that|which|it|nothing|tickets?|turns?|runs?|agents?|work)\s+begins?", "starts"),
}
"""Each pattern with the words to use instead. A pattern matches complete words, across the end of a line too."""

FUNCTION_NAME = re.compile(r"^ *(?:async )?def (_?(?:said|told|words))\(", re.MULTILINE)
"""No function has such a name: `format_event`, `describe` or `message` says what it returns."""

FIRST_SENTENCE = re.compile(r'\A"""((?:What|Whether|Who|Whom|Whoever|How|Where|When|Is|Are)\b.*)')
"""No module docstring starts so: a noun phrase or an imperative lets a stranger decide whether to open the file."""

NOUNS = {
    "briefing.py": "the text that an agent starts with",
    "housekeeping.py": "the field's word for periodic cleaning",
    "incoming.py": "an adjective: commits that come in",
    "listing.py": "a list that is shown",
    "routing.py": "the field's word for choosing a destination",
}
"""A file is named after a thing. These names end in -ing and are things."""

DEBTS: dict[str, tuple[str, ...]] = {"src/legion/domain": ("mend", "nobody"), "src/legion/jobs/agent": ("goes on",)}
"""Stored texts that keep their old words: values of rules in the database, and a heading that running agents have."""


ANY_PHRASE = re.compile(
    rf"\b(?:{'|'.join(f'(?P<r{number}>{pattern})' for number, (pattern, _) in enumerate(PHRASES.values()))})\b",
    re.IGNORECASE,
)


@cache
def findings() -> dict[tuple[str, str], list[str]]:
    """All places that break a rule, by folder (or document) and name of the rule."""
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for path in (*python_files("src"), *documents()):
        text = text_of(path)
        for rule, start, phrase in (*phrases(text), *(in_code(path.name, text) if path.suffix == ".py" else ())):
            where = place(path, text.count("\n", 0, start) + 1)
            found[place(path if path.suffix == ".md" else path.parent), rule].append(f"{where} {phrase!r}")
    return found


def documents() -> list[Path]:
    """All pages except the changelog, which quotes what was."""
    return [path for path in project_files() if path.suffix == ".md" and path.name != "CHANGELOG.md"]


def phrases(text: str) -> list[tuple[str, int, str]]:
    """The rules that a text breaks, each with the place and the words."""
    rules = list(PHRASES)
    return [
        (rules[int(str(match.lastgroup)[1:])], match.start(), " ".join(match[0].split()))
        for match in ANY_PHRASE.finditer(text)
    ]


def in_code(name: str, text: str) -> list[tuple[str, int, str]]:
    found = [("first sentence", match.start(1), match[1]) for match in FIRST_SENTENCE.finditer(text)]
    found += [("function name", match.start(1), match[1]) for match in FUNCTION_NAME.finditer(text)]
    if name.endswith("ing.py") and name not in NOUNS:
        found.append(("file name", 0, name))
    return found


def test_plain_words_are_used():
    new = {key: places for key, places in findings().items() if key[1] not in DEBTS.get(key[0], ())}
    told = [f"{one} ({PHRASES[rule][1] if rule in PHRASES else rule})" for (_, rule), all in new.items() for one in all]
    assert not new, "\n  ".join(["write it plainly:", *told])


def test_no_debt_is_listed_that_was_paid():
    paid = [(folder, rule) for folder, rules in DEBTS.items() for rule in rules if (folder, rule) not in findings()]
    assert not paid, f"remove from DEBTS: {paid}"


def test_a_class_name_means_one_thing():
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path in python_files("src"):
        for name in re.findall(r"^class (\w+)", text_of(path), re.MULTILINE):
            homes[name].append(place(path))
    shared = {name: places for name, places in homes.items() if len(places) > 1}
    assert not shared, f"give each of these classes a name of its own: {shared}"


def test_every_listed_noun_is_a_file():
    names = {path.name for path in python_files("src")}
    assert set(NOUNS) <= names, f"remove from NOUNS: {set(NOUNS) - names}"


def test_a_phrase_is_found_over_the_end_of_a_line_and_in_any_case():
    text = "A plain line.\nThe agent is\ntold so. Nobody lies.\nThis goes on the list of nobodys.\n"
    assert [(rule, phrase) for rule, _, phrase in phrases(text)] == [
        ("is told", "is told"),
        ("nobody", "Nobody"),
        ("lies", "lies"),
        ("goes on", "goes on"),
    ]


def test_module_sentences_and_names_are_found_in_code():
    text = '"""What it says."""\n\n\nclass One:\n    def _told(self): ...\n\n\ndef word(): ...\n'
    found = [(rule, phrase) for rule, _, phrase in in_code("hearing.py", text)]
    assert found == [("first sentence", 'What it says."""'), ("function name", "_told"), ("file name", "hearing.py")]
    assert in_code("briefing.py", '"""The text."""\n') == []


if __name__ == "__main__":
    by_folder: defaultdict[str, set[str]] = defaultdict(set)
    for folder, rule in findings():
        by_folder[folder].add(rule)
    for folder in sorted(by_folder):
        print(f"    {folder!r}: {tuple(sorted(by_folder[folder]))},".replace("'", '"'))
