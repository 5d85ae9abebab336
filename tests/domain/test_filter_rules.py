"""Rules for git filters: read as git reads them, and a change of them is said in words."""

from __future__ import annotations

import pytest

from legion.domain.landing.filter_rules import (
    FilterRule,
    filter_changes,
    filter_names,
    filter_rules,
    filter_sentence,
    refusal,
)


@pytest.mark.parametrize(
    ("files", "lines"),
    [
        ({".gitattributes": "# *.x filter=no\n*.key filter=crypt diff=crypt\n"}, ['"*.key" filter=crypt']),
        ({".gitattributes": '"a \\"b\\\\.key" filter=x\n'}, ['"a \\"b\\\\.key" filter=x']),
        ({".gitattributes": "*.a text\n*.b -filter\n*.c !filter\n"}, ['"*.b" -filter', '"*.c" -filter']),
        ({".gitattributes": "[attr]hide filter=x -diff\n*.k hide\n"}, ['"*.k" filter=x']),
        ({".gitattributes": "*.k filter=a filter=b\r\n"}, ['"*.k" filter=b']),
        ({"a/.gitattributes": "*.k filter=x\n/b/*.k filter=x\n"}, ['"/a/**/*.k" filter=x', '"/a/b/*.k" filter=x']),
        ({"a*/.gitattributes": "k filter=x\n", ".gitattributes": "k filter=y\n"},
         ['"k" filter=y', '"/a\\\\*/**/k" filter=x']),
    ],
)  # fmt: skip
def test_rules_count_from_the_top_and_the_last_one_wins(files: dict[str, str], lines: list[str]):
    assert [rule.line.strip() for rule in filter_rules(files)] == lines


def test_a_change_of_rules_says_what_it_means():
    key, binary, none = FilterRule("*.key", "crypt"), FilterRule("*.bin", "lfs"), FilterRule("*.key", "")
    assert filter_names([key, binary, none]) == ("crypt", "lfs")
    gone, come = filter_changes([key], [binary], ["lfs"])
    assert "*.key leaves the filter crypt" in gone
    assert "every clone needs that program" in come
    assert "do not define" in filter_changes([], [binary], [])[0]
    assert "taken out of filters" in filter_changes([key], [key, none], [])[0]
    assert filter_changes([key], [key], []) == ()
    assert "in another order" in filter_changes([none, key], [key, none], [])[0]
    assert "in another order" in filter_changes([none, key], [none, key, none], [])[0]


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
