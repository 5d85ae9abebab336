from __future__ import annotations

from pathlib import Path

import pytest

from legion.config.explain import explain
from legion.config.files import project
from legion.config.files.user import DEFAULTS, DriverSettings, flatten, load, parse, worktrees_folder
from legion.config.sections.machine import NetworkMode, SandboxMode
from legion.domain.agents.agent import ExtraRight
from legion.domain.errors import BadInput, NotFound

WHOLE = """\
default_driver = "quick"

[daemon]
host = "::1"
port = 7000
slots = 4
database = "postgresql://me:hunter2@localhost/legion?password=hunter3&sslmode=require"

[sandbox]
mode = "require"
network = "none"
read = ["~/data", "/opt/sdk"]
write = ["/var/cache/pip"]
env = ["LANG", "HTTPS_PROXY"]

[drivers.quick]
run = "agent --say 'hello world'"

[drivers.slow]
run = "agent"
timeout = 60

[worktrees]
folder = "/big/{name}"
pool = "auto"
disk_gb = 0.5
trash_days = 1

[standing]
most = 7
levels = 2
tell_anybody = ["Herald of  News"]
"""


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as refused:
        parse(text, origin="config.toml")
    assert "\n" not in refused.value.message
    return refused.value.message


def test_every_setting_of_a_whole_file_is_read():
    config = parse(WHOLE, origin="config.toml")
    assert (config.daemon.host, config.daemon.port, config.daemon.slots) == ("::1", 7000, 4)
    assert (config.sandbox.mode, config.sandbox.network) == (SandboxMode.REQUIRE, NetworkMode.NONE)
    assert config.sandbox.read == (Path.home() / "data", Path("/opt/sdk"))
    assert config.sandbox.env == ("LANG", "HTTPS_PROXY")
    assert config.drivers["quick"] == DriverSettings(name="quick", argv=("agent", "--say", "hello world"), timeout=None)
    assert config.drivers["slow"].timeout == 60.0
    assert (config.worktrees.disk_gb, config.worktrees.trash_days) == (0.5, 1.0)
    assert (config.standing.top.headcount, config.standing.top.depth) == (7, 2)
    opened = config.standing.opened
    assert [opened.to(ExtraRight.TELL, role) for role in ("herald of news", "herald", "")] == [True, False, False]
    assert not opened.to(ExtraRight.FIRE, "herald of news")


def test_the_sandbox_closes_what_nothing_opens():
    assert DEFAULTS.sandbox.network is NetworkMode.PUBLIC
    assert [parse(f'[sandbox]\nnetwork = "{name}"', origin="x").sandbox.network for name in ("open", "host")] == [
        *(NetworkMode.HOST, NetworkMode.HOST)
    ]
    local = parse('[sandbox]\nlocal = [5432, "~/db.sock"]', origin="x").sandbox.local
    assert local == (5432, Path.home() / "db.sock")
    for wrong in ('["db.sock"]', "[0]", "[70000]", "[true]", '["/run/../etc"]'):
        assert "sandbox.local" in refusal(f"[sandbox]\nlocal = {wrong}")
    assert [parse(f"[sandbox]\n{one}", origin="x").sandbox.is_off for one in ('mode = "off"', 'kind = "off"')] == [
        *(True, True)
    ]
    assert parse('[sandbox]\nkind = "container"', origin="x").sandbox.container == ""


def test_a_missing_file_means_the_defaults(tmp_path):
    config = load(tmp_path / "none.toml")
    assert config == DEFAULTS
    assert config.origin == str(tmp_path / "none.toml")


def test_the_file_is_found_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("LEGION_CONFIG", str(tmp_path / "mine.toml"))
    (tmp_path / "mine.toml").write_text("[daemon]\nport = 7001\n")
    assert load().daemon.port == 7001


def test_a_bad_file_is_refused_with_its_path_and_line(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("\n[daemon]\nport = 0\n")
    with pytest.raises(
        BadInput, match=f"In {path}, line 3, `daemon.port` must be a whole number from 1 to 65535, not 0"
    ):
        load(path)


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_a_file_that_is_no_text_is_refused_with_its_path(tmp_path, content):
    path = tmp_path / "config.toml"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=str(path)):
        load(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[deamon]\nport = 1", "line 1, `deamon` is not a setting; the nearest one is `daemon`"),
        ("default_drive = 'x'", "the nearest one is `default_driver`"),
        ("default_driver = 'x'", "line 1, `default_driver` names no driver: add [drivers.x] or change it"),
        ('[models]\nescalation = ["opus", "@x gpt"]', "line 2, `models.escalation` names no driver: add [drivers.x]"),
        ('[models.by_label]\na = ["@x"]', "`models.by_label` names no driver: add [drivers.x] or change it"),
        ('[planner]\ndriver = "x"', "line 2, `planner.driver` names no driver: add [drivers.x] or change it"),
        ('[daemon]\nhost = "example.org"', "`daemon.host` must be an IP address"),
        ('[sandbox]\nmode = "maybe"', '"auto", "require" or "off", not "maybe"'),
        ('[sandbox]\nread = ["data"]', '`sandbox.read` has "data", which must start with / or ~/'),
        ('[sandbox]\nwrite = ["/"]', "is too much to open to agents"),
        ('[sandbox]\nread = ["~/"]', "is too much to open to agents"),
        ('[sandbox]\nenv = ["A=b"]', "is no name of an environment variable"),
        ("[drivers.x]\ntimeout = 3", "`drivers.x` lacks `run`"),
        ('[drivers.x]\nrun = "a \'b"', "must be a command line with balanced quotes"),
        ('[drivers.x]\nrun = " "', "must be a command line"),
        ('[drivers."a/b"]\nrun = "x"', "needs a name"),
        ('[worktrees]\nfolder = "trees"', "must be a folder with {name} in it"),
        ('[worktrees]\nfolder = "../{name}-{user}"', "must be a folder with {name} in it"),
        ('[worktrees]\npool = "many"', 'a whole number from 0 to 1024 or "auto", not "many"'),
        ("[worktrees]\npool = -1", "not -1"),
    ],
)
def test_a_bad_value_gets_one_sentence_with_place_and_remedy(text, said):
    assert said in refusal(text)


def test_a_password_is_never_repeated():
    assert "hunter2" not in refusal('[daemon]\ndatabase = "mysql://me:hunter2@localhost/legion"')
    shown = dict(flatten(parse(WHOLE, origin="x")))["daemon.database"]
    assert shown == "postgresql://me:***@localhost/legion?password=***&sslmode=require"
    odd = parse('[daemon]\ndatabase = "postgresql://me:hun@ter2@localhost/legion"', origin="x")
    assert "ter2" not in str(dict(flatten(odd))["daemon.database"])


def test_the_driver_is_the_tickets_then_the_projects_then_the_persons():
    config = parse(WHOLE, origin="x")
    assert config.driver("slow", "quick") == config.drivers["slow"]
    assert config.driver("", "slow") == config.drivers["slow"]
    assert config.driver("", "") == config.drivers["quick"]


def test_the_only_driver_needs_no_choice():
    config = parse('[drivers.one]\nrun = "agent"', origin="x")
    assert config.driver("", "") == config.drivers["one"]


def test_a_missing_driver_says_what_to_add_and_where():
    with pytest.raises(NotFound, match=r"no driver \"fast\": `legion driver list` shows"):
        parse(WHOLE, origin="config.toml").driver("fast")
    several = parse('[drivers.a]\nrun = "a"\n[drivers.b]\nrun = "b"', origin="config.toml")
    with pytest.raises(NotFound, match=r"No driver is chosen: set `default_driver` in config\.toml"):
        several.driver("")


def test_claude_code_is_the_driver_where_nothing_else_is_said():
    assert DEFAULTS.driver("", "") is None
    assert parse(WHOLE, origin="x").driver("claude") is None
    assert parse('default_driver = "claude"\n[drivers.a]\nrun = "a"', origin="x").driver("") is None
    own = parse('[drivers.claude]\nrun = "my-claude"', origin="x").driver("claude")
    assert own is not None
    assert own.argv == ("my-claude",)


def test_the_pool_follows_the_project_where_it_is_auto():
    assert parse(WHOLE, origin="x").worktrees.warm(parallel=9) == 9
    assert DEFAULTS.worktrees.warm(parallel=9) == 2


@pytest.mark.parametrize(
    ("folder", "place"),
    [("../{name}-legion", "/src/ada/app-legion"), ("/big/{name}", "/big/app"), ("../../x/{name}", "/src/x/app")],
)
def test_worktrees_lie_where_the_template_says(folder, place):
    config = parse(f'[worktrees]\nfolder = "{folder}"', origin="x")
    assert worktrees_folder(config, Path("/src/ada/app")) == Path(place)


@pytest.mark.parametrize("folder", ["{name}", "../{name}", "../{name}/x", "../../../{name}/.."])
def test_worktrees_inside_or_around_the_repository_are_refused(folder):
    config = parse(f'[worktrees]\nfolder = "{folder}"', origin="config.toml")
    with pytest.raises(BadInput, match="neither inside nor around the repository /src/ada/app"):
        worktrees_folder(config, Path("/src/ada/app"))


def test_explain_says_where_every_setting_comes_from():
    ours = project.parse('[checks.test]\nrun = "x"\n[agents]\nparallel = 4', origin="legion.toml")
    rows = {row.key: row for row in explain(ours, "legion.toml at abc123", parse(WHOLE, origin="/me/config.toml"))}
    assert rows["checks.test.run"].origin == "legion.toml at abc123"
    assert rows["checks.test.timeout"].origin == "default"
    assert rows["agents.parallel"].origin == "legion.toml at abc123"
    assert rows["agents.attempts"].origin == "default"
    assert rows["drivers.quick.run"].value == "agent --say 'hello world'"
    assert rows["drivers.quick.run"].origin == "/me/config.toml"
    assert rows["worktrees.pool"].value == "auto"
    assert rows["daemon.port"].origin == "/me/config.toml"


def test_outside_a_project_only_the_persons_settings_are_explained():
    assert {row.key.split(".")[0] for row in explain(None, "", DEFAULTS)} == {
        "default_driver",
        "daemon",
        "sandbox",
        "worktrees",
        "governor",
        "budgets",
        "rhythm",
        "rewind",
        "hooks",
        "notify",
        "environment",
        "claude",
        "planner",
        "reviewer",
        "protection",
        "questions",
        "models",
        "standing",
        "liveness",
        "tui",
    }


def test_labels_have_ladders_of_their_own():
    found = parse('[models.by_label]\nurgent = ["opus"]\ndocs = ["haiku", "sonnet"]')
    assert dict(found.models.by_label) == {"urgent": ("opus",), "docs": ("haiku", "sonnet")}
    assert "models.by_label" in found.stated
    assert dict(flatten(found))["models.by_label"] == {"urgent": ["opus"], "docs": ["haiku", "sonnet"]}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('urgent = "opus"', "must be a list of models for urgent"),
        ("urgent = []", "must be a list of models for urgent"),
        ('urgent = [" "]', "is no name of a model"),
        ('"a b" = ["opus"]', "is no label"),
    ],
)
def test_a_ladder_of_a_label_that_makes_no_sense_is_refused(line, said):
    with pytest.raises(BadInput, match=said):
        parse(f"[models.by_label]\n{line}")


@pytest.mark.parametrize(
    "text",
    [
        '[drivers.aid]\nrun = "bash --norc"\ndriver = "terminal"',
        '[drivers.aid]\nrun = "bash"\ndriver = "terminal"\n[drivers.two]\nrun = "sh"\ndriver = "terminal"',
        '[drivers.judge]\nrun = "judge"\n[reviewer]\ndriver = "judge"',
        '[drivers.judge]\nrun = "judge"\n[planner]\ndriver = "judge"',
    ],
)
def test_a_driver_for_people_reviews_or_plans_is_not_that_of_every_ticket(text: str):
    config = parse(text, origin="x")
    assert config.driver_name("", "") == "claude"
    name = next(iter(config.drivers))
    assert config.driver_name(name) == name
    assert parse(f'{text}\n[drivers.mine]\nrun = "mine"', origin="x").driver_name("") == "mine"
