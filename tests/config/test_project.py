from __future__ import annotations

import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from legion.config.base import settings
from legion.config.files import project, user
from legion.config.files.project import DEFAULTS, flatten, hash_of, parse
from legion.domain.checks import Check
from legion.domain.errors import BadInput
from legion.domain.landing.queue import LandingMode

WHOLE = """\
[setup]
run = "make deps"
key = ["requirements.lock", "web/package-lock.json"]
timeout = 60

[checks.test]
run = '''
set -e
make test'''
timeout = 1.5

[checks.lint]
run = "make lint"

[agents]
parallel = 8
attempts = 2
timeout = 100
driver = "fast"

[landing]
mode = "squash"
batch = 5
checks_at_once = 3

[protected]
paths = ["migrations/**"]
"""


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as refused:
        parse(text, origin="legion.toml")
    said = refused.value.message
    assert "\n" not in said
    assert said.endswith(".")
    return said


def outcome(text: str) -> str:
    """What is said against the text; empty where it is fine."""
    try:
        parse(text, origin="legion.toml")
    except BadInput as refused:
        return refused.message
    return ""


def test_every_setting_of_a_whole_file_is_read():
    config = parse(WHOLE, origin="legion.toml")
    assert config.setup.run == "make deps"
    assert config.setup.key == ("requirements.lock", "web/package-lock.json")
    assert config.checks == (
        Check(name="test", command="set -e\nmake test", timeout=1.5),
        Check(name="lint", command="make lint", timeout=600.0),
    )
    assert (config.agents.parallel, config.agents.attempts, config.agents.driver) == (8, 2, "fast")
    assert (config.landing.mode, config.landing.batch, config.landing.checks_at_once) == (LandingMode.SQUASH, 5, 3)
    assert config.agents.timeout == 100.0


def test_an_empty_file_means_the_defaults():
    assert parse("", origin="legion.toml") == DEFAULTS
    assert DEFAULTS.checks == ()
    assert DEFAULTS.protected.paths == ()


def test_checks_keep_the_order_of_the_file():
    text = "".join(f'[checks.c{number}]\nrun = "x"\n' for number in (3, 1, 2))
    assert [check.name for check in parse(text, origin="x").checks] == ["c3", "c1", "c2"]


def test_the_project_adds_to_what_is_always_protected():
    assert parse(WHOLE, origin="x").protected.paths == ("migrations/**",)


def test_windows_line_ends_change_nothing():
    assert parse(WHOLE.replace("\n", "\r\n"), origin="x") == parse(WHOLE, origin="x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "\n[agents]\nparallel = 0",
            "In legion.toml, line 3, `agents.parallel` must be a whole number from 1 to 1024, not 0",
        ),
        ("[agents]\nparallel = 1025", "from 1 to 1024, not 1025"),
        ("[agents]\nparallel = true", "not true"),
        ("[agents]\nparallel = 2.0", "not 2.0"),
        ('[agents]\nparallel = "4"', 'not "4"'),
        ("[agents]\nattempts = 21", "line 2, `agents.attempts` must be a whole number from 1 to 20"),
        ("[agents]\ntimeout = nan", "`agents.timeout` must be seconds from 1 to 604800, not nan"),
        ("[agents]\ntimeout = inf", "not inf"),
        ("[agents]\ntimeout = 1979-05-27", "not 1979-05-27"),
        ('[agents]\ndriver = "a b"', "the name of a driver in the person's own file"),
        ('[landing]\nmode = "fast"', '`landing.mode` must be "merge", "squash" or "rebase", not "fast"'),
        ("[landing]\nmode = []", "not []"),
        ("[setup]\nrun = 3", "`setup.run` must be a command"),
        ('[setup]\nrun = "a\\u0000b"', "`setup.run` must be a command"),
        ('[setup]\nkey = "a"', "`setup.key` must be a list of file names"),
        ('[setup]\nkey = ["ok", "../x"]', '`setup.key` has "../x", which'),
        ('[setup]\nkey = ["/etc/passwd"]', "starts with a slash"),
        ('[setup]\nkey = ["req*.txt"]', "has a wildcard in it, so name the files themselves"),
        ('[setup]\nkey = ["a/"]', "is a folder"),
        ("[setup]\nkey = [1]", "not 1"),
        ('[protected]\npaths = ["a/{b,c}"]', "write one pattern for each"),
        ("[checks.test]\ntimeout = 3", "line 1, `checks.test` lacks `run`, which must be a command"),
        ('[checks.test]\nrun = "  "', "`checks.test.run` must be a command"),
        ('[checks."a b"]\nrun = "x"', "line 1, `checks.a b` needs a name of at most 40 letters"),
        ('[checks]\ntest = "pytest"', "line 2, `checks.test` must be a table like [checks.test], not"),
        ('[[checks]]\nrun = "x"', "`checks` must be a table like [checks]"),
        ("setup = 3", "line 1, `setup` must be a table like [setup], not 3"),
        ("[agents]\nparalel = 3", "line 2, `agents.paralel` is not a setting; the nearest one is `agents.parallel`"),
        ("[check.a]\nrun = 'x'", "`check` is not a setting; the nearest one is `checks`"),
        ("[x]", "`x` is not a setting; known here are project, setup, checks, agents, landing, conflicts, protected"),
        ("agents = { zzz = 1 }", "line 1, `agents.zzz` is not a setting"),
        ("agents.parallel = 0", "line 1, `agents.parallel`"),
        ("a =", "legion.toml is not valid TOML, so fix it: invalid value"),
        ("a = 1\na = 2", "line 2"),
    ],
)
def test_a_bad_value_gets_one_sentence_with_place_and_remedy(text, said):
    assert said in refusal(text)


def test_the_line_is_found_behind_long_strings_that_look_like_settings():
    text = '[setup]\nrun = """\n\n[agents]\nparallel = 1\n"""\n\n[agents]\n# parallel = 2\nparallel = 0\n'
    assert "line 10, `agents.parallel`" in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        '[sandbox]\nmode = "off"',
        "[daemon]\nport = 1",
        '[drivers.x]\nrun = "evil"',
        'default_driver = "x"',
        '[worktrees]\nfolder = "/"',
        '[agents]\npermission_mode = "bypass"',
        '[agents]\nPermission-Mode = "bypass"',
        '[agents]\ncommand = "evil"',
        '[agents]\nrun = "evil"',
        '[agents]\nbase_url = "http://evil"',
        '[agents.env]\nX = "1"',
        '[checks.test]\nrun = "x"\nenv = { A = "b" }',
        '[providers.x]\nurl = "http://evil"',
        '[gateway]\nurl = "http://evil"',
        'host = "0.0.0.0"',
        "[agents]\nmemory_gb = 1",
    ],
)
def test_what_is_the_persons_to_decide_is_refused_and_says_where_it_belongs(text):
    assert "belongs into the person's own settings file" in refusal(text)


@pytest.mark.parametrize("name", ["api_key", "token", "password", "credentials", "secret", "API-KEY"])
def test_credentials_have_no_place_in_a_repository(name):
    assert "must never contain or choose credentials" in refusal(f'[agents]\n{name} = "x"')


def test_no_setting_of_the_persons_file_is_known_in_a_repositorys_file():
    """Whatever is added to one file later must not open in the other by accident."""
    own = {(section.split(".")[0], name) for section, kind in project.SECTIONS.items() for name in settings.rules(kind)}
    for section, kind in user.SECTIONS.items():
        for name in settings.rules(kind):
            assert (section.split(".")[0], name) not in own
            table = f"[{section.replace('NAME', 'x')}]\n" if section else ""
            assert "belongs into the person's own" in refusal(f"{table}{name} = 1")


def test_a_check_may_be_called_like_anything():
    config = parse('[checks.env]\nrun = "x"\n[checks.token]\nrun = "y"', origin="x")
    assert [check.name for check in config.checks] == ["env", "token"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 20_000, "nests its values too deeply"),
        ("a = " + "9" * 20_000, "a number that no setting can have"),
        ("a." * 20_000 + "b = 1", "more than 200 dots"),
        ("[" + "a." * 20_000 + "b]", "more than 200 dots"),
        ("a." * 100 + "b = 1", "`a` is not a setting"),
        ("agents." + "a." * 100 + "b = 1", "`agents.a` is not a setting"),
        ("checks." + "a." * 100 + "b = 1", "`checks.a.a` is not a setting"),
        ("".join(f"{'a.' * 90}b{number} = 1\n" for number in range(300)), "`a` is not a setting"),
        ("[a]\n" + "b.c.d = 1\n" * 5_000, "is not valid TOML"),
        ("".join(f"[t{number}]\n" for number in range(6_000)), "`t0` is not a setting"),
        ("x = [" + "{a=1}," * 10_000 + "]", "`x` is not a setting"),
        ("[agents]\n" + "#\n" * 30_000 + "zzz = 1", "line 30002, `agents.zzz`"),
        ("x = '" + "y" * 60_000 + "'", "`x` is not a setting"),
        ("# " + "x" * 70_000, "is larger than 64 KB"),
        ("k" * 60_000 + " = 1", "..."),
        ('"\\u001b[31m\\n" = 1', "`\\x1b[31m\\n` is not a setting"),
        ('# safe \u202e"fr- mr" = nur', "invisible character U+202E in line 1"),
        ('[setup]\nrun = "a \u2066 b"', "invisible character U+2066 in line 2"),
        ('[setup]\nrun = "a \\u202e b"', "`setup.run` must be"),
    ],
)
def test_a_hostile_file_is_refused_quickly_and_cannot_reach_the_terminal(text, said):
    refused = refusal(text)
    assert said in refused
    assert refused.isprintable()
    assert len(refused) < 400


@given(st.text(max_size=200))
@example("\ud800")
@example("[checks]")
@example('[checks.""]')
def test_any_text_is_read_or_refused_with_one_sentence(text):
    assert "\n" not in outcome(text)


_values = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text("ab\n", max_size=3).map(lambda text: f"{text!r}")),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)


@given(st.sampled_from([key for key, _ in flatten(DEFAULTS)]), _values)
def test_any_value_for_a_known_key_is_taken_or_refused_by_name(key, value):
    written = (
        str(value).lower() if isinstance(value, bool) else str(value).replace("True", "true").replace("False", "false")
    )
    text = f"{key} = {written}"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert outcome(text) == "" or f"`{key}`" in outcome(text)


@pytest.mark.parametrize("section", [*project.SECTIONS.values(), *user.SECTIONS.values()])
def test_every_default_is_allowed_by_its_own_rule(section):
    needed = dict.fromkeys(settings.required(section), ("x",) if section is user.DriverTable else "x")
    whole = section(**needed)
    for name, rule in settings.rules(section).items():
        assert rule.read(rule.show(getattr(whole, name))) == getattr(whole, name)


def test_the_hash_changes_with_every_character_and_with_nothing_else():
    assert hash_of(WHOLE) == hash_of(str(WHOLE))
    assert hash_of(WHOLE) != hash_of(WHOLE + "\n")
    assert hash_of(WHOLE) != hash_of(WHOLE.replace("\n", "\r\n"))
    assert len(hash_of("\udcff")) == 64


def test_flatten_lists_every_setting_as_plain_values():
    rows = dict(flatten(parse(WHOLE, origin="x")))
    assert rows["checks.test.run"] == "set -e\nmake test"
    assert rows["checks.lint.timeout"] == 600
    assert rows["landing.mode"] == "squash"
    assert rows["protected.paths"] == ["migrations/**"]
    assert next(iter(rows)) == "project.depends_on"
