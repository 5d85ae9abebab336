"""A whole squad of real Claude Code processes whose model is scripted: daemon, gateway, rehearsal and a project."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent

from legion.drivers.claude.profile import bundled_program
from legion.rehearsal.process import Playing
from legion.runner.journal import JournalEvent, read_journal
from legion.wire.providers import AddProvider
from tests.support.legion import Project, Squad
from tests.support.repository import CHECK, Repository
from tests.support.stage import playing
from tests.support.stand_in import build

KEY = "sk-ant-planted-5e1f0c7d9b3a4826"
"""What opens the door of the scripted provider, as far as Legion knows: the rehearsal takes any key."""

RETRIES = "CLAUDE_CODE_MAX_RETRIES"


class Company:
    """One person with a scripted provider. Scripts may be written while it plays."""

    def __init__(
        self, squad: Squad, project: Project, stage: Playing, scripts: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.squad = squad
        self.project = project
        self.stage = stage
        self.scripts = scripts
        self._env = env or {}

    def start(self, extra: Mapping[str, str] | None = None) -> None:
        """The daemon anew, after it was killed, as it was started at first."""
        self.squad.start({**self._env, **(extra or {})})

    def script(self, name: str, text: str) -> None:
        (self.scripts / f"{name}.toml").write_text(dedent(text))

    def dispatch(self, script: str, **fields: object) -> int:
        """A ticket for Claude Code whose model plays this script."""
        return self.project.dispatch(f"play {script}", "", text=f"rehearsal: {script}", driver="claude", **fields)

    def dispatch_standing(self, script: str, **fields: object) -> int:
        """A ticket that waits for a standing agent."""
        return self.project.dispatch(f"play {script}", "", text=f"rehearsal: {script}", driver="standing", **fields)

    def cli(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return self.squad.cli(*words, cwd=self.project.repository.root, stdin=stdin)

    def told(self, *words: str, stdin: str = "") -> str:
        """What a command that has to go well prints, and says beside."""
        done = self.cli(*words, stdin=stdin)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    @contextlib.contextmanager
    def using(self, program: Path | None) -> Iterator[None]:
        """Runs that start in this block use this Claude Code; None is the real one, also next to a stand-in."""
        before = self.squad.settings.read_text()
        path = program or bundled_program()
        table = "[claude]\n"
        settings = before if table in before else f"{before}\n{table}"
        settings = re.sub(r"(?<=\[claude\]\n)program = .*\n", "", settings)
        self.squad.settings.write_text(settings.replace(table, f'{table}program = "{path}"\n', 1))
        try:
            yield
        finally:
            self.squad.settings.write_text(before)

    def json(self, *words: str, stdin: str = "") -> dict[str, object]:
        found: dict[str, object] = json.loads(self.cli(*words, "--json", stdin=stdin).stdout)
        return found

    def journal(self, ticket: int) -> list[JournalEvent]:
        """Everything that happened in the ticket's runs, oldest first."""
        runs = [run.id for run in self.project.ticket(ticket).runs]
        return [event for run in runs for event in read_journal(self.squad.data.runs / f"ticket-{ticket}-run-{run}")]

    def provide(self, key: str = KEY) -> None:
        """`legion provider add`, as the command asks for it."""
        self.squad.client.add_provider(AddProvider(name="rehearsal", url=self.stage.url, key=key))


@contextlib.contextmanager
def company(
    folder: Path,
    *,
    settings: str = "",
    provided: bool = True,
    retries: int = 1,
    config: str = CHECK,
    files: Mapping[str, str] | None = None,
    module: str = "legion.daemon",
    env: Mapping[str, str] | None = None,
    stand_in: bool = False,
    cached: bool = False,
) -> Iterator[Company]:
    """Agents can write into the folder `gates`; without `provided` there is no way to a model yet.

    `retries` is how often Claude Code asks a silent model again, `module` is one that becomes the daemon,
    `env` are more variables of the daemon, `files` are in the repository from the start. With `stand_in`, a
    small program plays Claude Code: for scenarios whose subject is Legion. With `cached` the model counts as one
    with a prompt cache.
    """
    scripts, gates = folder / "scripts", folder / "gates"
    for place in (scripts, gates):
        place.mkdir()
    walls = f'[sandbox]\nwrite = ["{gates}"]\nenv = ["{RETRIES}"]\n'
    squad = Squad(folder, settings=walls + settings, module=module)
    # Nobody's own login may be found by chance, and nobody waits three minutes for a key that stays wrong.
    own = {"CLAUDE_CONFIG_DIR": str(folder / "nobody"), "ANTHROPIC_API_KEY": "", RETRIES: str(retries)}
    env = {**own, **(env or {})}
    if stand_in:
        env["PATH"] = build.path()
    with playing(scripts, folder, cached=cached) as stage:
        try:
            squad.start(env)
            repository = Repository(folder / "ada", config)
            if files:
                repository.commit("more", dict(files))
            project = squad.adopt(repository)
            one = Company(squad, project, stage, scripts, env)
            if provided:
                one.provide()
            yield one
        finally:
            squad.close()
