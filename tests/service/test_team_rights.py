"""What an agent may give by naming a team: no more than it has itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.jobs.agent import teams
from legion.store.board import crews, tickets
from legion.wire.errors import NotAllowed, NotFound
from tests.support.office import office
from tests.support.repository import CHECK


def test_an_agent_cannot_widen_by_a_team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEGION_CONFIG", str(tmp_path / "config.toml"))
    for place, text in {
        "roles/seer.toml": 'part = "advise"\nprompt = "See."\nmodel = "opus"',
        "roles/guard.toml": 'part = "read"\nprompt = "Guard."\nmodel = "opus"',
        "roles/robot.toml": 'part = "build"\nprompt = "Build."\ndriver = "claude"',
        "teams/usual.toml": 'roles = ["engineer", "guard"]',
        "teams/dear.toml": 'roles = ["seer", "engineer", "guard:read"]',
        "teams/driven.toml": 'roles = ["robot", "guard"]',
        "teams/fine.toml": 'roles = ["tech_lead", "engineer", "guard"]',
    }.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    with office(tmp_path / "office", config=CHECK.replace("[agents]", '[agents]\nteam = "usual"')) as here:
        boss = here.hire("boss", tools=["Read", "Bash"], model="sonnet")
        with pytest.raises(NotAllowed, match="guard reads every change, and the team solo has none"):
            boss.use("legion-dispatch", title="t", text="x", team="solo")
        with pytest.raises(NotAllowed, match="You cannot give a model like opus, which seer"):
            boss.use("legion-dispatch", title="t", text="x", team="dear")
        with pytest.raises(NotAllowed, match="robot of the team driven names a program or a provider"):
            boss.use("legion-dispatch", title="t", text="x", team="driven")
        with pytest.raises(NotFound, match="There is no team 'fines'; did you mean fine"):
            boss.use("legion-dispatch", title="t", text="x", team="fines")
        number = boss.use("legion-dispatch", title="t", text="x").data["ticket"]
        with here.context.store.read() as tx:
            ticket = tickets.get(tx, number)
            crew = crews.get(tx, ticket.spec.crew)
        assert (ticket.spec.team, crew.readers[0].role.model) == ("usual", "sonnet")
        assert teams.tools(crew.readers[0], ticket) == frozenset({"Read"})
        assert teams.tools(crew.builder, ticket) == frozenset({"Read", "Bash"})
