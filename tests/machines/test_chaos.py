"""Links, workers and heads break at random while tickets run: each ends as on one machine."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from legion.demo.machines.link_process import LOSSY, ONLY_DOWN, ONLY_UP, SLOW
from legion.rehearsal.protocol.log import RequestKind
from legion.wire.providers import AddProvider
from tests.machines.fleet import LABEL, Fleet, fleet
from tests.machines.workers import LEASE
from tests.support.legion import new
from tests.support.models import KEY, RETRIES
from tests.support.sampling import SEED
from tests.support.stage import playing
from tests.support.stand_in import build

SPEND = """
[[step]]
call = {tool = "Bash", input = {command = "sleep 0.5; echo $LEGION_TICKET > spent-$LEGION_TICKET.txt"}}
[[step]]
say = "Done."
"""


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("count", [4, pytest.param(200, marks=pytest.mark.soak)], ids=str)
def test_tickets_end_as_on_one_machine_whatever_breaks(tmp_path: Path, count: int):
    """Nothing lost, nothing twice, no orphan process, and each request to a model is counted once."""
    chance = random.Random(SEED)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "spend.toml").write_text(SPEND)
    # No login of the person who runs the tests may be found by chance.
    own = {"CLAUDE_CONFIG_DIR": str(tmp_path / "none"), "ANTHROPIC_API_KEY": "", RETRIES: "3", "PATH": build.path()}
    with (
        playing(tmp_path / "scripts", tmp_path) as stage,
        fleet(tmp_path / "fleet", "m1", "m2", "m3", lease=2 * LEASE, env=own) as far,
    ):
        far.head.client.add_provider(AddProvider(name="rehearsal", url=stage.url, key=KEY))
        project = far.adopt()
        plain = [new(f"Ticket {n}", f"sleep 0.5; echo {n} > {n}.txt", on=[LABEL]) for n in range(count)]
        agents = [
            new(f"Agent {n}", text="rehearsal: spend", driver="claude", on=[LABEL]) for n in range(max(1, count // 40))
        ]
        tickets = project.dispatch_all([*agents, *plain])
        last = 0
        for _ in range(max(5, count // 4)):
            break_something(far, chance)
            last = far.head.client.wait(project.cwd, tickets, after_event=last, timeout=2).last_event
        for link in far.links.values():
            link.heal()
        project.until_settled(*tickets, patience=120 + 3 * count)
        ended = {one: project.state(one) for one in tickets}
        assert set(ended.values()) == {"done"}, [project.ticket(one) for one, state in ended.items() if state != "done"]
        history = project.history()
        assert [history.count(one.title) for one in (*agents, *plain)] == [1] * len(tickets)
        assert all(project.landed(f"{n}.txt") == f"{n}\n" for n in range(count))
        far.until(lambda: not far.runners(), "no process is left")
        counted = far.head.client.usage(project.cwd).total.usage
        asked = [one for one in stage.lines() if one.kind is not RequestKind.COUNT]
        assert counted.requests - counted.failed == len([one for one in asked if one.status == 200]), (counted, asked)
        assert counted.requests >= 2 * len(agents)


def break_something(far: Fleet, chance: random.Random) -> None:
    name = chance.choice(sorted(far.links))
    link, worker = far.links[name], far.workers[name]
    match chance.randrange(6):
        case 0:
            link.cut()
        case 1:
            link.change(chance.choice([SLOW, LOSSY, ONLY_UP, ONLY_DOWN]))
        case 2:
            link.heal()
        case 3:
            link.break_connections()
        case 4:
            worker.kill()
            worker.start()
        case _:
            far.head.kill()
            far.head.start()
