"""Git filters in words: what a change of their rules means, and which filters do not run."""

from __future__ import annotations

import pytest

from legion.domain.landing.filter_rules import (
    filter_changes,
    filter_lines,
    filter_names,
    filter_sentence,
    program_names,
    refusal,
)


def test_names_and_rules_are_found_in_the_texts_of_attribute_files():
    texts = [
        "# *.x filter=no\n*.key filter=crypt diff=crypt\r\n*.c text\n",
        "[attr]hide filter=x -diff\n*.k hide\n*.b -filter\n",
    ]
    assert filter_names(texts) == ("crypt", "x")
    assert filter_lines(texts) == (
        "*.key filter=crypt diff=crypt",
        "[attr]hide filter=x -diff",
        "*.k hide",
        "*.b -filter",
    )


def test_a_change_of_rules_says_what_it_means():
    none: tuple[list[str], list[str]] = ([], [])
    gone, come = filter_changes({"a.key": "crypt"}, {"b.bin": "lfs"}, none, ["lfs"])
    assert "a.key: leaves the filter crypt: from then on such files are stored as they are" in gone
    assert "b.bin: goes through the filter lfs" in come
    assert "every clone needs that program" in come
    assert "do not define" in filter_changes({}, {"b.bin": "lfs"}, none, [])[0]
    assert "changes from the filter a to b" in filter_changes({"x": "a"}, {"x": "b"}, none, ["b"])[0]
    many = {f"{number}.key": "crypt" for number in range(9)}
    assert "4.key and 4 more: leaves" in filter_changes(many, {}, none, [])[0]
    assert filter_changes({"x": "a"}, {"x": "a"}, (["x filter=a"], ["x filter=a"]), []) == ()


def test_a_rule_that_no_file_matches_yet_is_named_and_so_is_another_order():
    key, free = "*.key filter=crypt", "*.key -filter"
    assert "`*.key filter=crypt` is gone" in filter_changes({}, {}, ([key], []), [])[0]
    assert "`*.key -filter` is new" in filter_changes({}, {}, ([key], [key, free]), [])[0]
    assert "another order" in filter_changes({}, {}, ([free, key], [key, free]), [])[0]


def test_a_filter_reads_its_own_settings_and_those_of_its_programs_alone():
    transcrypt = '"$(git config --get transcrypt.crypt-dir || printf crypt)"/transcrypt clean context=default %f'
    assert program_names("crypt", [transcrypt]) == {"crypt", "transcrypt"}
    assert program_names("x", ['"git-crypt" clean', "A=1 /opt/strip | http core"]) == {"x", "git-crypt", "strip"}


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("git-lfs clean -- %f", True),
        ('"git-crypt" clean', True),
        ("sed s/a/b/ | tr a-z A-Z", True),
        ("sh -c 'sed s/a/b/'", True),
        ("/usr/bin/python3 /opt/strip.py", True),
        ("python3 -P -m nbstripout", True),
        ("python3 -Im nbstripout", True),
        ('"/usr/bin/python3" -m nbstripout', False),
        ("python3 tools/strip.py", False),
        ("cat | ./strip", False),
        ("tools/strip", False),
        ("A=1 npx strip", False),
        ("sh strip.sh", False),
        ("node --no-warnings strip.js", False),
        ("broken 'quote", False),
    ],
)
def test_a_filter_whose_program_may_come_from_the_tree_is_refused_with_a_remedy(command: str, runs: bool):
    refused = refusal("x", {"clean": command})
    assert (refused is None) is runs
    assert runs or f"`{command}` can take its program from the worktree" in filter_sentence("x", refused)
