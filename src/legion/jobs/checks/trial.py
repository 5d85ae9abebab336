"""The trial of a project's checks: [setup], each check on the code as it is, then with an error planted in the code.

It runs in check trees, as the test of any change: so it finds what a change would find. An error is planted in each
package of the repository by itself, and at last in copies of the code that [setup] left from before: a process that a
check starts in another folder may run those.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from legion.domain.checks import Check, CheckResult, Receipt
from legion.domain.errors import LegionError
from legion.domain.landing.queue import needed
from legion.domain.review import trial
from legion.domain.review.source_files import CheckKind, kind_of
from legion.domain.review.trial import WAITS, Sight, Trial, TriedCheck, sight_of, tests_ran
from legion.domain.tickets.ticket import Park, ParkReason, Ticket
from legion.git.hub.objects import write_commit
from legion.git.merge import partial_trees
from legion.jobs.board import Board
from legion.jobs.checks import execution, red_checks, sight
from legion.jobs.checks.execution import WantedCheck
from legion.jobs.checks.job import ChecksBroken, confirmed
from legion.jobs.checks.prepared_tree import PreparedTree
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import setup
from legion.jobs.workspace.command import CancelToken
from legion.jobs.workspace.save import AUTHOR
from legion.system import files, trees

_MOST_PACKAGES = 12
"""How many packages of a repository are broken, each by itself: the largest."""
_MOST_FILES = 1000
"""How many files of a package are broken: those nearest to its folder."""
_SHORTEST_COPY = 20
"""Bytes of a file below which the same content tells nothing."""
_MOST_OUTPUT = 1 << 20
_PACKAGE = re.compile(
    r"\.dist-info/METADATA$|(?:^|/)node_modules/(?:@[^/]+/)?[^/@]+/package\.json$|/gems/[^/]+/[^/]+\.gemspec$"
)
"""The file by which each installed package is counted once."""


def stops(context: Context, project: ProjectContext, waiting: Sequence[Ticket], *, tip: str = "") -> Park | None:
    """Why these tickets may not land now, after a trial where one is due; None where they may.

    `tip`: the commit that would land, which passed its checks. Where the target itself fails them, the trial takes
    place there.
    """
    if not sight.is_on(context, project):
        return None
    with context.store.read() as tx:
        found = None if sight.is_due(context, tx, project) else sight.last(context, tx, project)
    if found is None:
        with _noted(context, waiting):
            found = run(context, project, CancelToken())
    if not found.complete and tip:
        with _noted(context, waiting):
            found = run(context, project, CancelToken(), commit=tip)
    with context.store.read() as tx:
        passes = not found.doubts or sight.is_trusted(tx, project, found)
    return None if passes else Park(ParkReason.QUESTION, WAITS)


@contextmanager
def _noted(context: Board, waiting: Sequence[Ticket]) -> Iterator[None]:
    notes, ids = context.live.queue.notes, [ticket.id for ticket in waiting]
    notes.update(dict.fromkeys(ids, "waits for the trial of the checks: `legion doctor --try` shows it"))
    try:
        yield
    finally:
        notes.remove(ids)


def run(context: Context, project: ProjectContext, cancel: CancelToken, *, commit: str = "") -> Trial:
    """Try the checks on the target, or on another commit, unless that was done meanwhile, and store what was found.

    Where a person asked for it, [setup] and the checks run even if their results are known. Raises Cancelled.
    """
    live = context.live.trials
    with live.lock(project.id):
        again = live.again.get(project.id) or False
        with context.store.read() as tx:
            known = sight.last(context, tx, project, commit)
            due = (known is None or not known.complete) if commit else sight.is_due(context, tx, project)
        if known is not None and not again and not due:
            return known
        trouble = ""
        try:
            found = _TrialRun(context, project, cancel, commit or project.record.target, again=again).result()
            sight.keep(context, project, found)
            live.again.remove([project.id])
            return found
        except LegionError as problem:
            trouble = problem.message
            raise
        finally:
            live.end(project.id, trouble)


class _TrialRun:
    def __init__(
        self, context: Context, project: ProjectContext, cancel: CancelToken, commit: str, *, again: bool
    ) -> None:
        self._context = context
        self._project = project
        self._cancel = cancel
        self._commit = commit
        self._again = again
        self._checks = project.config.checks
        scripts = sight.scripts(project.hub, commit)
        self._kind = partial(kind_of, scripts=scripts)
        self._noticed: dict[str, bool] = {}
        """By package: whether a check was red with an error in it."""
        self._red: set[str] = set()
        """Checks that were red with an error somewhere."""
        self._tried_out: set[str] = set()
        """Checks that ran with an error somewhere."""
        self._stopped: list[str] = []
        """Packages in which every error made [setup] fail before a check could notice."""
        self._setup_says = ""
        self._packages = 0
        self._fetched = 0
        self._copies: dict[str, bytes] = {}
        """Outputs of setup that hold the code as it was before an error was planted, and what they hold."""

    def result(self) -> Trial:
        seconds, fault = self._setup()
        base = {} if fault else {check.name: self._on_base(check) for check in self._checks}
        green = {name for name, receipt in base.items() if receipt.verdict is CheckResult.GREEN}
        sound = [check for check in self._checks if check.name in green]
        packages = sight.sources(self._project, self._commit)
        largest = dict(sorted(packages.items(), key=lambda item: -len(item[1]))[:_MOST_PACKAGES])
        for folder, paths in largest.items() if len(sound) == len(self._checks) else ():
            self._break(folder, paths, sound)
        copies = self._used_copies(sound)
        if base:
            with self._context.store.write() as tx:
                red = [receipt for receipt in base.values() if receipt.verdict is not CheckResult.GREEN]
                red_checks.remember(tx, self._project.id, self._commit, red)
        return Trial(
            key=sight.key(self._project, self._commit),
            commit=self._commit,
            at=self._context.clock(),
            setup=seconds,
            setup_fault=fault,
            setup_says=self._setup_says,
            packages=self._packages,
            fetched=self._fetched,
            checks=tuple(self._tried(check, base.get(check.name), bool(packages)) for check in self._checks),
            files=sum(map(len, packages.values())),
            unseen=tuple(folder for folder, seen in self._noticed.items() if not seen and folder not in self._stopped),
            unknown=tuple(folder for folder in self._stopped if not self._noticed[folder]),
            copies=copies,
        )

    def _step(self, words: str) -> None:
        self._cancel.raise_if_cancelled()
        self._context.live.trials.begin(self._project.id, words)

    def _setup(self) -> tuple[float | None, str]:
        """Seconds, and the words of a failure."""
        if not self._project.config.setup.run:
            return None, ""
        self._step("setup")
        began, before = time.monotonic(), trees.size(self._project.cache)
        try:
            with execution.tree_of(self._context, self._project, self._commit, self._cancel) as ready:
                if self._again:
                    began = time.monotonic()
                    ready.make()
                place, outputs = ready.show()
                seconds = time.monotonic() - began
                made = (str(file.relative_to(place)) for output in outputs for file in _files_below(output))
                self._packages = sum(1 for path in made if _PACKAGE.search(path))
        except setup.SetupFailed as failed:
            self._setup_says = failed.says or failed.message
            return time.monotonic() - began, failed.message
        self._fetched = max(0, trees.size(self._project.cache) - before)
        return seconds, ""

    def _on_base(self, check: Check) -> Receipt:
        self._step(f"{check.name} on the code as it is")
        test = execution.run_again if self._again else execution.test_unless_cancelled
        tested = test(self._context, self._project, self._commit, [WantedCheck(check=check)], self._cancel)
        (receipt,) = confirmed(self._context, self._project, tested, self._cancel).receipts
        return receipt

    def _break(self, folder: str, paths: Sequence[str], sound: Sequence[Check]) -> None:
        """Plant errors in one package, until one check has noticed and each that never did was tried."""
        self._noticed[folder] = False
        wanted = needed(sound, paths)
        testing = [check for check in wanted if self._kind(check) is CheckKind.TESTS]
        reading = [check for check in wanted if check not in testing]
        for checks, kind in ((testing, CheckKind.TESTS), (reading, CheckKind.READER)):
            todo = [check for check in checks if not (self._noticed[folder] and check.name in self._red)]
            broken = self._broken(paths, kind) if todo else {}
            # An error in what setup builds says nothing of the checks: they are judged by what it leaves alone.
            run = {path: both for path, both in broken.items() if trial.leaves_setup_alone(path, kind)}
            if todo and not self._try(folder, broken, todo) and not (run and self._try(folder, run, todo)):
                self._stopped += [] if folder in self._stopped else [folder]

    def _broken(self, paths: Sequence[str], kind: CheckKind) -> Mapping[str, tuple[bytes, bytes]]:
        """By path: the content as it is, and with an error."""
        ids = partial_trees.tracked(self._project.hub, self._commit)
        nearest = sorted(paths, key=lambda path: (path.count("/"), path))[:_MOST_FILES]
        contents = {path: self._project.hub.content(ids[path]) for path in nearest}
        plant = trial.breaks_at_run_time if kind is CheckKind.TESTS else trial.breaks_when_read
        planted = ((path, content, plant(path, content)) for path, content in contents.items())
        return {path: (content, broken) for path, content, broken in planted if broken is not None}

    def _try(self, folder: str, broken: Mapping[str, tuple[bytes, bytes]], checks: Sequence[Check]) -> bool:
        """False where [setup] fails with these errors."""
        where = f"an error in {folder}" if folder else "an error in the code"
        commit = self._commit_of({path: new for path, (_, new) in broken.items()})
        try:
            with execution.tree_of(self._context, self._project, commit, self._cancel) as ready:
                self._remember_copies(ready, broken)
                for check in checks:
                    if self._noticed[folder] and check.name in self._red:
                        continue
                    self._step(f"{check.name} with {where}")
                    self._tried_out.add(check.name)
                    if self._is_red(ready, check):
                        self._noticed[folder] = True
                        self._red.add(check.name)
        except setup.SetupFailed:
            return False
        return True

    def _is_red(self, ready: PreparedTree, check: Check) -> bool:
        """A check that does not end in time is not green either."""
        ended = execution.try_in(self._context, self._project, ready, check, why="trial", cancel=self._cancel)
        if ended.lost:
            raise ChecksBroken(f"The trial of `{check.command}` could not be run: {ended.how}.")
        return ended.exit_code != 0

    def _remember_copies(self, ready: PreparedTree, broken: Mapping[str, tuple[bytes, bytes]]) -> None:
        """Files among the outputs of setup that hold what a broken file held before."""
        by_name: dict[str, set[bytes]] = {}
        for path, (content, _) in broken.items():
            if len(content) >= _SHORTEST_COPY:
                by_name.setdefault(path.rpartition("/")[2], set()).add(content)
        place, outputs = ready.show()
        for output in outputs:
            for file in _files_below(output):
                wanted = by_name.get(file.name, ())
                is_alike = any(file.stat().st_size == len(content) for content in wanted)
                if is_alike and (content := file.read_bytes()) in wanted:
                    self._copies[str(file.relative_to(place))] = content

    def _used_copies(self, sound: Sequence[Check]) -> tuple[str, ...]:
        """Those copies that a check runs: it is red when only they are broken."""
        testing = [check for check in sound if self._kind(check) is CheckKind.TESTS and check.name in self._red]
        if not self._copies or not testing:
            return ()
        try:
            with (
                execution.tree_of(self._context, self._project, self._commit, self._cancel) as shared,
                shared.own() as ready,
            ):
                place, _ = ready.show()
                for path, content in self._copies.items():
                    # As a new file: the old one may be a hard link into a cache that others use.
                    broken = trial.breaks_at_run_time(path, content) or content
                    files.write_atomic(place / path, broken, mode=0o644, durable=False)
                for check in testing:
                    self._step(f"{check.name} with an error in copies of the code")
                    if self._is_red(ready, check):
                        return tuple(sorted(self._copies))
        except setup.SetupFailed:
            return ()
        return ()

    def _tried(self, check: Check, receipt: Receipt | None, can_break: bool) -> TriedCheck:
        verdict = CheckResult.SETUP if receipt is None else receipt.verdict
        if verdict is not CheckResult.GREEN:
            found = Sight.RED_BASE
        elif not can_break or (self._stopped and check.name not in self._tried_out):
            found = Sight.NOTHING_TO_BREAK
        else:
            found = sight_of(self._kind(check), red=check.name in self._red, others_see=bool(self._red))
        output = "" if receipt is None else receipt.output  # runners count at its end
        text = files.end(self._context.data.root / output, _MOST_OUTPUT).decode("utf-8", "replace") if output else ""
        return TriedCheck(
            name=check.name,
            command=check.command,
            base=verdict,
            seconds=0.0 if receipt is None else receipt.duration,
            tests=None if receipt is None else tests_ran(text or receipt.tail),
            sight=found,
            words="" if receipt is None or verdict is CheckResult.GREEN else receipt.tail[-2000:],
        )

    def _commit_of(self, contents: Mapping[str, bytes]) -> str:
        stamp = AUTHOR.stamp(0)
        return write_commit(
            self._project.hub,
            tree=partial_trees.with_contents(self._project.hub, self._commit, contents),
            parents=(self._commit,),
            author=stamp,
            committer=stamp,
            message="Errors in the code, for the trial of the checks",
        )


def _files_below(output: Path) -> Iterator[Path]:
    """Plain files, and none behind a link."""
    if output.is_file():
        yield output
    elif output.is_dir():
        for one in trees.walk(output):
            if one.entry.is_file(follow_symlinks=False):
                yield output / one.path
