"""A whole stretch of work in bad weather: bad changes, conflicts, usage limits, questions and kills.

It ends with all good work landed, no bad tree ever in the target, and no question asked twice.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from legion.domain.events import Event, EventKind
from legion.rehearsal.process import Playing
from legion.store import events
from legion.store.database.transactions import Store, sqlite_url
from legion.wire.dispatch import NewTicket
from legion.wire.mail import AnswerQuestion
from tests.crash import invariants
from tests.crash.squads import Site, site
from tests.crash.test_chaos import WORK, Chaos
from tests.support.legion import Project, new
from tests.support.models import RETRIES
from tests.support.stage import playing
from tests.support.stand_in import build

MENDS = 'if [ "$LEGION_ATTEMPT" = 1 ]; then echo BROKEN > {name}.txt; exit; fi\n' + WORK
"""Bad at first, and good once its agent has been told."""
STAYS_BAD = "echo BROKEN > {name}.txt"
ASKS = WORK + "mkdir -p .github; echo {name} > .github/{name}.yml\n"
"""Writes where a person has to open first."""
CLASHES = """
sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' README.txt
grep -qx "$LEGION_TICKET was here" README.txt || echo "$LEGION_TICKET was here" >> README.txt
"""
"""All write behind the same last line."""
LIMITED = """
[[step]]
say = "I begin."
call = {tool = "Bash", input = {command = "echo {name} > {name}.txt"}}

[[step]]
status = 429
times = 2
limit = {resets_in = 4}
say = "I go on."
call = {tool = "Bash", input = {command = "echo more >> {name}.txt; sort -u -o {name}.txt {name}.txt"}}

[[step]]
say = "Done."

[capture]
name = 'work on (\\S+)'
"""


@dataclass(frozen=True, kw_only=True)
class Board:
    tickets: list[NewTicket]
    bad: frozenset[int]
    """Those that never become good, by their place."""
    clashing: frozenset[int]
    asking: frozenset[int]


def board(here: Site, draw: random.Random, count: int) -> Board:
    """A tenth is bad for good, a tenth at first, a tenth clashes. Two meet a limit. Nobody waits for what will fail."""
    places = draw.sample(range(count), k=count)
    tenth = max(1, count // 10)
    left = iter(places[:-2])
    bad, mends, clashes, asks = (
        list(itertools.islice(left, number)) for number in (tenth, tenth, max(2, tenth), 1 + count // 40)
    )
    limited = places[-2:]
    tickets: list[NewTicket] = []
    for number in range(count):
        name = f"t{number}"
        free = [other for other in range(number) if other not in bad]
        after = draw.sample(free, k=min(len(free), draw.choice((0, 0, 1)))) if number not in limited else []
        order: dict[str, Any] = {"key": name, "after_keys": [f"t{other}" for other in after]}
        if number in limited:
            text = f"rehearsal: limited. Please work on {name}"
            tickets.append(new(f"ticket {number}", text=text, driver="claude", max_attempts=20, **order))
            continue
        script = WORK
        for those, what in ((bad, STAYS_BAD), (mends, MENDS), (clashes, CLASHES), (asks, ASKS)):
            script = what if number in those else script
        agent = here.agent(script.replace("{name}", name))
        tickets.append(new(f"ticket {number}", agent, max_attempts=2 if number in bad else 20, **order))
    return Board(tickets=tickets, bad=frozenset(bad), clashing=frozenset(clashes), asking=frozenset(asks))


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Site, Playing]]:
    """A site whose agents may also be Claude Code's stand-in. The scripted model is no part of it: it is not killed."""
    stage, scripts = tmp_path / "stage", tmp_path / "stage" / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "limited.toml").write_text(LIMITED)
    for name, value in {"CLAUDE_CONFIG_DIR": str(stage), "ANTHROPIC_API_KEY": "", RETRIES: "1"}.items():
        monkeypatch.setenv(name, value)
    if not build.wants_real():
        monkeypatch.setenv("PATH", f"{build.stand_in()}:{os.environ['PATH']}")
    with playing(scripts, stage) as model, site(tmp_path / "site") as one:
        one.squad.settings.write_text(f'{one.squad.settings.read_text()}\nenv = ["{RETRIES}"]\n')
        one.squad.settings.with_name("providers.toml").write_text(f'[rehearsal]\nurl = "{model.url}"\n')
        yield one, model


def struck_on_the_way(project: Project, chaos: Chaos, strikes: int, apart: int) -> None:
    """Strike after about so many events each time, however long they take, until the board rests or strikes are out."""
    last = 0
    for _ in range(strikes):
        until = last + chaos.draw.randrange(apart // 2, apart * 3 // 2)
        while last < until:
            state = project.squad.client.wait(project.cwd, [], after_event=last, timeout=5)
            last = state.last_event
            if state.settled:
                return
        chaos.strike()


def settled(project: Project) -> None:
    """Until nothing more happens by itself and nobody asks. The person says yes to everybody."""
    while True:
        project.until_settled(patience=600)
        asked = project.squad.client.inbox().questions
        for question in asked:
            project.squad.client.answer(question.id, AnswerQuestion(choice="yes"))
        if not asked:
            return


def recorded(here: Site) -> list[Event]:
    store = Store(sqlite_url(here.squad.data.database))
    try:
        with store.read() as tx:
            return list(events.after(tx, 0, limit=1_000_000))
    finally:
        store.close()


def bad_commits(project: Project) -> list[str]:
    commits = project.hub_git("rev-list", "--first-parent", "refs/legion/target").split()
    return [commit for commit in commits if "BROKEN" in project.hub_git("archive", commit, "--", "*.txt")]


@pytest.mark.parametrize(("count", "strikes"), [(9, 3), pytest.param(100, 25, marks=pytest.mark.soak)])
@pytest.mark.timeout(1800)
def test_in_bad_weather_all_good_work_lands_and_nothing_bad_ever_does(
    there: tuple[Site, Playing], seed: int, count: int, strikes: int
):
    here, model = there
    draw = random.Random(seed)
    project = here.open()
    wanted = board(here, draw, count)
    ids = project.dispatch_all(wanted.tickets)
    chaos = Chaos(here, draw)
    struck_on_the_way(project, chaos, strikes, apart=25)
    settled(project)
    states = {place: project.state(ticket) for place, ticket in enumerate(ids)}
    expected = {place: "failed" if place in wanted.bad else "done" for place in range(count)}
    assert states == expected, chaos.killed
    for place in set(range(count)) - wanted.bad - wanted.clashing:
        assert project.landed(f"t{place}.txt") == f"more\nt{place}\n"
    clashed = {f"{ids[place]} was here" for place in wanted.clashing}
    assert set((project.landed("README.txt") or "").splitlines()) == {"hello", *clashed}
    assert bad_commits(project) == []
    asked = Counter(event.ticket for event in recorded(here) if event.kind is EventKind.QUESTION_ASKED)
    assert asked == {ids[place]: 1 for place in wanted.asking}
    assert len({line.conversation for line in model.lines() if line.status == 429}) == 2
    here.is_sound(only=SOUND)


SOUND = (
    invariants.nothing_is_left_in_hand,
    invariants.the_target_only_ever_moved_to_tested_commits,
    invariants.what_each_run_left_is_kept_in_the_hub,
    invariants.no_process_is_left_over,
    invariants.all_locks_are_free,
    invariants.the_hub_is_sound,
    invariants.the_persons_branch_has_it_all_and_a_clean_checkout,
)
"""Not all tickets are done, and Claude Code does not say that it was started as scripted agents do."""
