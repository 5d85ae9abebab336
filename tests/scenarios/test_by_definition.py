"""Changes that Legion merges definition by definition, and proves again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.scenarios.test_coupled import PARSER, both_at_work
from tests.support.gates import Gate
from tests.support.legion import Project, new

BY_DEFINITION = "[conflicts]\nby_definition = true\nlook_every = 0\norder = false\n"


def test_words_that_two_tickets_add_to_one_definition_are_merged_by_legion_and_proven_again(
    make: Callable[..., Project], gates: Callable[[], Gate]
):
    project = make(f"{BY_DEFINITION}[checks.test]\nrun = 'python3 -c \"import parser\"'\n")
    project.repository.commit("parser", {"parser.py": PARSER})
    other, mine = both_at_work(
        project,
        gates,
        "sed -i 's/self, text)/self, text, milk=1)/' parser.py",
        "sed -i 's/self, text)/self, text, lemon=2)/' parser.py",
        "grep -q lemon=2 parser.py && grep -q milk=1 parser.py",
    )
    page = project.ticket(mine)
    assert (page.ticket.state, len(page.runs), page.merged) == ("done", 1, "parser.py: Parser.__init__")
    assert project.ticket(other).merged == ""
    assert "self, text, milk=1, lemon=2):" in (project.landed("parser.py") or "")
    assert (
        "merged by Legion, definition by definition: parser.py: Parser.__init__"
        in project.squad.cli("ticket", str(mine), cwd=project.repository.root).stdout
    )
    assert "Merged-By-Definition: parser.py: Parser.__init__" in project.hub_git(
        "log", "-1", "--format=%B", page.landed or ""
    )


@pytest.mark.parametrize(
    ("settings", "prove", "why"),
    [
        ("[protected]\npaths = ['parser.py']\n", "true", "a protected file"),
        ("", "! grep -q milk parser.py || grep -q resolved parser.py", "a red proof"),
    ],
)
def test_what_legion_merged_and_nothing_proved_goes_to_the_agent(
    make: Callable[..., Project], gates: Callable[[], Gate], settings: str, prove: str, why: str
):
    project = make(f"{BY_DEFINITION}{settings}[checks.test]\nrun = 'true'\n")
    project.repository.commit("parser", {"parser.py": PARSER})
    resolve = "sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>\\|self, text, milk)/d; s/lemon)/lemon, resolved)/' parser.py"
    files = ["parser.py"] if settings else []
    _, mine = both_at_work(
        project,
        gates,
        "sed -i 's/self, text)/self, text, milk)/' parser.py",
        f"if [ $LEGION_ATTEMPT = 1 ]; then sed -i 's/self, text)/self, text, lemon)/' parser.py; else {resolve}; fi",
        prove,
        files=files,
    )
    page = project.ticket(mine)
    assert (len(page.runs), page.merged) == (2, "")


def test_a_target_that_moves_behind_the_proof_of_a_merge_by_definition_has_it_proven_again(
    make: Callable[..., Project], gates: Callable[[], Gate]
):
    held = gates()
    alone = "[reversal]\nproofs = 0\n[landing]\nbatch = 1\nspeculate = false\n"
    project = make(f"{BY_DEFINITION}{alone}[checks.test]\nrun = '''if [ -e hold.txt ]; then {held.pause}; fi'''\n")
    project.repository.commit("parser", {"parser.py": PARSER})
    gate = gates()
    proof = "grep -q lemon parser.py && { ! grep -q sugar parser.py || ! grep -q salt parser.py; }"
    first, mine = project.dispatch_all(
        [
            new("milk", "sed -i 's/self, text)/self, text, milk=1)/' parser.py"),
            new(
                "lemon",
                f"{gate.pause}; sed -i 's/self, text)/self, text, lemon=2)/' parser.py",
                prove=[proof],
                max_attempts=1,
            ),
        ]
    )
    project.until(first, "done")
    salt = project.dispatch(
        "salt", "sed -i 's/self, text, milk=1)/self, text, milk=1, salt=3, sugar=4)/' parser.py; touch hold.txt"
    )
    held.arrived()
    gate.open()
    project.until(mine, "landing")
    held.open(20)
    project.until_settled(salt, mine, patience=60)
    page = project.ticket(mine)
    assert (project.state(salt), page.ticket.state) == ("done", "failed")
    assert "lemon" not in (project.landed("parser.py") or "")
    assert any("merged by definition with what landed meanwhile" in one.words for one in page.history)


def test_a_tickets_own_text_marks_no_commit_as_merged_by_legion(make: Callable[..., Project]):
    project = make("[checks.test]\nrun = 'true'\n")
    text = "Cake.\n\nMerged-By-Definition: menu.txt: soup\nUndoes: 1"
    ticket = project.dispatch("cake", "echo cake > cake.txt", text=text)
    page = project.until(ticket, "done")
    said = project.hub_git("log", "-1", "--format=%(trailers:only)", page.landed or "")
    assert (page.merged, "Undoes" in said, "Merged-By-Definition" in said) == ("", False, False)
