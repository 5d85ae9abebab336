"""Teams: one builds, who advises stands before it, who reads behind it, and every wrong list says what is wrong."""

from __future__ import annotations

from itertools import product

import pytest

from legion.domain.agents import teams
from legion.domain.agents.teams import READING, Crew, Role, RolePart, Team, TeamStage, assemble
from legion.domain.errors import BadInput, NotFound

LEAD = Role(name="tech_lead", part=RolePart.ADVISE, prompt="Lead.")
ENGINEER = Role(name="engineer", part=RolePart.BUILD)
QA = Role(name="qa", part=RolePart.READ, prompt="Verify.", tools=frozenset({"Read", "Bash"}))
ROLES = {role.name: role for role in (LEAD, ENGINEER, QA)}


def crew(*roles: str) -> Crew:
    return assemble(Team(name="some", roles=roles, file="teams/some.toml"), ROLES)


def test_a_crew_knows_who_advises_who_builds_and_who_reads():
    made = crew("tech_lead", "engineer", "qa", "tech_lead:read")
    assert [stage.key for stage in made.advisers] == ["tech_lead"]
    assert made.builder.role is ENGINEER
    assert [stage.key for stage in made.readers] == ["qa", "tech_lead-read"]
    assert [made.stage(key) for key in ("", "qa", "tech_lead-read", "nobody")] == [made.builder, *made.readers, None]


@pytest.mark.parametrize("parts", [parts for size in range(1, 4) for parts in product(RolePart, repeat=size)])
def test_every_order_is_a_crew_exactly_if_one_builds_between_advisers_and_readers(parts):
    roles = {f"r{at}": Role(name=f"r{at}", part=part) for at, part in enumerate(parts)}
    team = Team(name="some", roles=tuple(roles))
    known = [part for part in parts if part is not RolePart.RESOLVE]
    early = RolePart.RESOLVE in parts and RolePart.BUILD in parts[parts.index(RolePart.RESOLVE) :]
    ordered = known == sorted(known, key=list(RolePart).index) and not early and parts.count(RolePart.RESOLVE) < 2
    if ordered and parts.count(RolePart.BUILD) == 1:
        assert tuple(stage.part for stage in assemble(team, roles).stages) == parts
    else:
        with pytest.raises(BadInput, match="The team some in shipped"):
            assemble(team, roles)


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        (("qa", "engineer"), "has qa read a change before there is one"),
        (("engineer", "tech_lead"), "has tech_lead advise after the work is done"),
        (("tech_lead", "qa"), "exactly one role that builds, and none does"),
        (("engineer", "tech_lead:build"), "and engineer, tech_lead does"),
        (("engineer", "qa", "qa"), "has qa twice"),
        (("tech_lead", "tech_lead:advise", "engineer"), "has tech_lead twice"),
    ],
)
def test_a_wrong_order_says_what_is_wrong_and_where(roles, said):
    with pytest.raises(BadInput, match=r"teams/some\.toml") as refused:
        crew(*roles)
    assert said in refused.value.message


def test_a_role_that_is_not_there_is_refused_with_the_list():
    with pytest.raises(NotFound, match=r"names the role 'writer'.*engineer, qa, tech_lead"):
        crew("writer", "engineer")


def test_unknown_names_are_refused_with_the_list_and_the_nearest():
    known = {"solo": Team(name="solo", roles=("engineer",)), "qa_team": Team(name="qa_team", roles=("engineer",))}
    with pytest.raises(NotFound, match=r"no team 'qa_taem'; did you mean qa_team: choose one of qa_team, solo\."):
        teams.find_team("qa_taem", known)
    with pytest.raises(NotFound, match=r"no role 'zzz': choose one of engineer, qa, tech_lead\."):
        teams.find_role("zzz", ROLES)
    assert teams.find_team("solo", known).name == "solo"
    assert teams.find_role("qa", ROLES) is QA


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "names no role"),
        (("engineer",) * 9, "more than 8"),
        (("Engineer",), "small letters"),
        (("engineer:paint",), "the part 'paint'"),
        (("engineer:",), "the part ''"),
        (("../etc",), "small letters"),
        (("a" * 41,), "longer than 40"),
    ],
)
def test_a_list_of_roles_is_refused_by_its_form(names, said):
    assert said in (teams.roles_fault(names) or "")


@pytest.mark.parametrize("name", ["qa", "tech_lead", "my-own-role2", "a" * 40])
def test_plain_names_are_fine(name):
    assert teams.name_fault(name) is None
    assert teams.roles_fault([name, f"{name}:read"]) is None


@pytest.mark.parametrize("name", ["", "-qa", "qa-", "q.a", "a__b", "2nd", "q/a", "ä", "a\n"])
def test_names_that_could_be_paths_or_two_things_are_not(name):
    assert teams.name_fault(name)


def test_who_only_reads_has_only_reading_tools_unless_its_role_names_some():
    assert TeamStage(role=LEAD, part=RolePart.ADVISE).tools == READING
    assert TeamStage(role=ENGINEER, part=RolePart.READ).tools == READING
    assert TeamStage(role=ENGINEER, part=RolePart.BUILD).tools is None
    assert TeamStage(role=QA, part=RolePart.READ).tools == frozenset({"Read", "Bash"})


def test_advice_is_asked_for_in_order_and_from_everybody_once():
    made = crew("tech_lead", "qa:advise", "engineer")
    given: list[str] = []
    while (stage := made.missing_adviser(given)) is not None:
        given.append(stage.key)
    assert given == ["tech_lead", "qa-advise"]
    assert teams.PLAIN.missing_adviser(()) is None
