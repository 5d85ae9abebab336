"""Files of roles and teams: nearer ones replace farther ones whole, and nonsense is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.config.files import teams
from legion.config.files.teams import DefinitionKind, Definitions, DefinitionSource
from legion.domain.agents.teams import READING, Origin, RolePart
from legion.domain.errors import BadInput, NotFound


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEGION_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path


def write(kind: DefinitionKind, name: str, text: str) -> Path:
    path = teams.file_of(kind, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def repository(kind: DefinitionKind, name: str, text: str) -> DefinitionSource:
    return DefinitionSource(
        kind=kind, name=name, text=text, origin=Origin.REPOSITORY, file=teams.repository_path(kind, name)
    )


READER = 'part = "read"\nprompt = "Read."\n'


def test_every_shipped_team_is_a_crew():
    found = teams.definitions()
    assert not found.faults
    stages = {name: [stage.key for stage in found.crew(name).stages] for name in found.teams}
    assert stages == {
        "solo": ["engineer"],
        "tech_lead_team": ["tech_lead", "engineer", "qa"],
        "fullstack_team": ["architect", "engineer", "qa"],
        "backend_team": ["tech_lead", "engineer"],
        "qa_team": ["qa-advise", "engineer", "qa"],
    }
    assert set(found.roles) == {"tech_lead", "engineer", "qa", "pm", "architect", "devops", "reviewer", "resolver"}
    assert found.reader("reviewer").part is RolePart.READ


def test_a_team_may_name_who_resolves_and_that_role_writes():
    write(DefinitionKind.ROLE, "resolver", 'part = "resolve"\nprompt = "Both."\nmodel = "opus"\n')
    write(DefinitionKind.TEAM, "one", 'roles = ["engineer", "resolver", "qa"]')
    crew = teams.definitions().crew("one")
    assert (crew.builder.key, [stage.key for stage in crew.readers]) == ("engineer", ["qa"])
    assert crew.resolver is not None
    assert (crew.resolver.role.model, crew.resolver.tools) == ("opus", None)
    assert teams.definitions().crew("solo").resolver is None


def test_every_shipped_role_builds_a_team_of_its_part():
    for role in teams.definitions().roles.values():
        write(DefinitionKind.TEAM, "one", f'roles = ["engineer", "{role.name}:read"]')
        assert teams.definitions().crew("one").readers[0].role == role


def test_the_persons_file_replaces_a_shipped_one_whole_and_a_repositorys_replaces_both():
    write(DefinitionKind.ROLE, "qa", READER + 'model = "opus"\nprovider = "ollama"\ndriver = "codex"\n')
    mine = teams.definitions().role("qa")
    assert (mine.prompt, mine.model, mine.provider, mine.driver, mine.about) == ("Read.", "opus", "ollama", "codex", "")
    assert mine.origin is Origin.PERSON
    theirs = teams.definitions([repository(DefinitionKind.ROLE, "qa", 'part = "read"\nprompt = "Here."')]).role("qa")
    assert (theirs.prompt, theirs.model, theirs.origin) == ("Here.", "", Origin.REPOSITORY)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('part = "read"\nprompt = 3', "line 2, `prompt` must be a text that is not empty, not 3."),
        ('part = "read"\n\nprompt = " "', "line 3, `prompt` must be a text that is not empty"),
        ('part = "paint"\nprompt = "x"', 'line 1, `part` must be "advise", "build", "read" or "resolve", not "paint".'),
        ('prompt = "x"', "qa.toml lacks `part`, which must be"),
        (READER + "tools = []", "line 3, `tools` must be a list of names of tools that is not empty"),
        (READER + 'tools = ["Read", "Bash(rm *)"]', 'line 3, `tools` has "Bash(rm *)", which is no name of a tool.'),
        (READER + 'promt = "x"', "line 3, `promt` is not a setting; the nearest one is `prompt`."),
        (READER + 'provider = "a b"', "line 3, `provider` must be"),
        (READER + 'about = "a\\nb"', "line 3, `about` must be one line"),
        ('part = "read"\nprompt = """\nx', "is not valid TOML"),
        ('part = "read"\nprompt = "' + "x" * 8001 + '"', "has 8001 characters, and 8000 are the most."),
        ('part = "read"\nprompt = "a\u202eb"', "invisible character U+202E in line 2"),
    ],
)
def test_a_role_that_makes_no_sense_is_refused_with_line_and_reason(text, said):
    path = write(DefinitionKind.ROLE, "qa", text)
    found = teams.definitions()
    with pytest.raises(BadInput) as refused:
        found.role("qa")
    assert said in refused.value.message
    assert str(path) in refused.value.message
    with pytest.raises(BadInput, match=r"qa\.toml"):
        found.crew("tech_lead_team")
    assert found.crew("backend_team").team == "backend_team"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("roles = []", "line 1, `roles` has [], which names no role."),
        ('about = "x"', "lacks `roles`"),
        ('about = "x"\nroles = "engineer"', "line 2, `roles` must be a list of roles"),
        ('roles = ["engineer", "QA"]', "small letters"),
        ('roles = ["engineer"]\nrounds = 0', "line 2, `rounds` must be a whole number from 1 to 20, not 0."),
    ],
)
def test_a_team_that_makes_no_sense_is_refused_with_line_and_reason(text, said):
    path = write(DefinitionKind.TEAM, "mine", text)
    with pytest.raises(BadInput) as refused:
        teams.definitions().crew("mine")
    assert said in refused.value.message
    assert str(path) in refused.value.message


def test_a_broken_file_of_the_persons_does_not_give_way_to_the_shipped_one(home: Path):
    write(DefinitionKind.TEAM, "solo", "roles = 3")
    with pytest.raises(BadInput):
        teams.definitions().crew("solo")
    teams.file_of(DefinitionKind.TEAM, "solo").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="is not UTF-8 text"):
        teams.definitions().crew("solo")
    teams.file_of(DefinitionKind.TEAM, "solo").unlink()
    teams.file_of(DefinitionKind.TEAM, "solo").mkdir()
    with pytest.raises(BadInput, match="cannot be read"):
        teams.definitions().crew("solo")


def test_a_file_with_a_name_that_nobody_could_write_is_refused():
    write(DefinitionKind.TEAM, "My Team", 'roles = ["engineer"]')
    with pytest.raises(BadInput, match=r"The name of .*My Team\.toml must be small letters"):
        teams.definitions().team("My Team")


def test_a_wrong_order_of_roles_is_refused_with_its_line():
    path = write(DefinitionKind.TEAM, "mine", 'about = "x"\nroles = ["qa", "engineer"]')
    with pytest.raises(BadInput) as refused:
        teams.definitions().crew("mine")
    assert f"{path}, line 2, has qa read a change before there is one" in refused.value.message


def test_a_team_with_an_unknown_role_says_which_there_are():
    write(DefinitionKind.TEAM, "mine", 'roles = ["engineer", "oracle"]')
    with pytest.raises(NotFound, match="'oracle', which does not exist: choose from architect, devops, engineer"):
        teams.definitions().crew("mine")


def with_repository(text: str, name: str = "qa") -> Definitions:
    return teams.definitions([repository(DefinitionKind.ROLE, name, text)])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('provider = "ollama"', "line 3, `provider` is yours alone to choose"),
        ('driver = "codex"', "line 3, `driver` is yours alone to choose"),
        ('tools = ["Read", "Bash"]', "line 3, `tools` has Bash, and a repository's role may have no more than Glob"),
    ],
)
def test_a_repositorys_role_cannot_widen(line, said):
    with pytest.raises(BadInput) as refused:
        with_repository(READER + line).role("qa")
    assert said in refused.value.message


def test_a_repositorys_role_has_no_more_tools_than_the_one_it_replaces():
    write(DefinitionKind.ROLE, "engineer", 'part = "build"\nprompt = "Build."\ntools = ["Read", "Edit"]')
    builder = 'part = "build"\nprompt = "Ours."\n'
    assert with_repository(builder, "engineer").role("engineer").tools == frozenset({"Read", "Edit"})
    assert with_repository(builder + 'tools = ["Read"]', "engineer").role("engineer").tools == frozenset({"Read"})
    with pytest.raises(BadInput, match="`tools` has Bash"):
        with_repository(builder + 'tools = ["Bash"]', "engineer").role("engineer")
    assert with_repository(builder, "another").role("another").tools is None
    assert with_repository(READER, "another").role("another").tools == READING


def test_what_is_trusted_is_a_text_in_its_place():
    one, other = repository(DefinitionKind.ROLE, "qa", READER), repository(DefinitionKind.ROLE, "pm", READER)
    assert one.hash != other.hash
    assert one.hash == repository(DefinitionKind.ROLE, "qa", READER).hash


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".legion/roles/qa.toml", (DefinitionKind.ROLE, "qa")),
        (".legion/teams/solo.toml", (DefinitionKind.TEAM, "solo")),
        (".legion/roles/deep/qa.toml", None),
        (".legion/roles/qa.txt", None),
        ("roles/qa.toml", None),
        (".legion/roles", None),
    ],
)
def test_a_path_tells_what_its_file_defines(path, expected):
    assert teams.repository_name(path) == expected
