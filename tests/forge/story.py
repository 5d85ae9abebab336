"""The story of one issue at the stand-in, as people and CI tell it, with a real daemon and agents that are scripts."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

from legion.wire.forge import AddForge
from legion.wire.projects import Where
from tests.forge.hosting import hosting
from tests.support.github_app import StandIn
from tests.support.legion import Project, Squad
from tests.support.looking import until_seen
from tests.support.repository import CHECK, Repository

AGENT = """\
echo "attempt $LEGION_ATTEMPT" >> work.txt
grep -q 'CI of the forge failed' "$LEGION_BRIEFING" && echo ci >> work.txt
grep -q 'Please say hello' "$LEGION_BRIEFING" && echo hello >> work.txt
cp "$LEGION_BRIEFING" "briefing-$LEGION_ATTEMPT.md"
exit 0
"""
TO_PR = f'{CHECK}\n[landing]\ntarget = "pr"\nmode = "squash"\n'
CI = "build"


class Story:
    """One Legion at one stand-in."""

    def __init__(self, legion: Squad, project: Project, forge: StandIn) -> None:
        self.legion = legion
        self.project = project
        self.forge = forge
        self.hosted = forge.hosted

    def sync(self) -> None:
        self.legion.client.sync_forge(Where(cwd=self.project.cwd))

    def until(self, seen: Callable[[], object], what: str) -> None:
        """Look at the forge now and then, as the loop does each minute, until it is there."""
        looks = itertools.count()

        def look() -> bool:
            if not seen() and next(looks) % 15 == 0:
                self.sync()
            return bool(seen())

        until_seen(self.legion, look, what, patience=40)

    def pull(self) -> int | None:
        """The number of the first pull request."""
        return next((number for number, one in self.hosted.issues.items() if one.pull is not None), None)

    def open_pull(self) -> int:
        self.until(self.pull, "a pull request")
        found = self.pull()
        assert found is not None
        return found


def settings(folder: Path) -> str:
    agent = folder / "agents/agent.sh"
    agent.parent.mkdir()
    agent.write_text(AGENT)
    return f'default_driver = "worker"\n[drivers.worker]\nrun = "sh {agent}"\n[sandbox]\nread = ["{agent.parent}"]\n'


@contextlib.contextmanager
def telling(folder: Path, config: str = TO_PR) -> Iterator[Story]:
    shop = Repository(folder / "shop", config)
    (folder / "forge").mkdir()
    (folder / "legion").mkdir()
    legion = Squad(folder / "legion", settings=settings(folder / "legion"))
    with hosting(folder / "forge", shop.root) as forge:
        try:
            yield connected(legion.start(), shop, forge)
        finally:
            legion.close()


def connected(legion: Squad, shop: Repository, forge: StandIn) -> Story:
    project = legion.adopt(shop)
    wanted = AddForge(cwd=project.cwd, kind="github", address="acme/shop", url=forge.url, key="robot-token")
    legion.client.add_forge(wanted)
    story = Story(legion, project, forge)
    story.sync()
    return story
