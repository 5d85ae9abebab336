"""Fixtures for every room, and the seed in the report's header."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pluggy
import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from tests.support import attacks, places, skips, watched_git
from tests.support.dealing import dealt
from tests.support.migrated import migrated_database, migrated_file
from tests.support.postgres import fresh_database
from tests.support.sampling import SEED
from tests.support.session import Session
from tests.support.shared_imports import import_in_turn

# Their asserts tell as much as those of a test. Before a test imports them.
pytest.register_assert_rewrite("tests.crash.invariants", "tests.crash.squads")
# Examples are judged by what they do, never by how long a busy machine takes.
hypothesis.settings.register_profile("legion", deadline=None)
hypothesis.settings.load_profile("legion")
# The seed alone decides which examples are drawn. Else Hypothesis mixes in values from the source of what this worker
# has imported so far, and every worker reads a thousand files for that.
NO_CONSTANTS = Constants()
providers._get_local_constants = lambda: NO_CONSTANTS

# For `make quick`: random examples are drawn in full by `make test`.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20)

watched_git.watch()

# A run in the background of a shell ignores Ctrl-C, and every program of a test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Agents and checks find a python3 that begins at once: a script that looks for its version first, as pyenv's, takes ten
# times as long.
if Path(shutil.which("python3") or sys.executable).read_bytes()[:2] == b"#!":
    os.environ["PATH"] = f"{sys.base_prefix}/bin{os.pathsep}{os.environ['PATH']}"

_SESSION = pytest.StashKey[Session]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(SEED)
    if not hasattr(config, "workerinput"):
        config.stash[_SESSION] = Session()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected stays: no collection of garbage has to look at it, now or in a test."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_collectstart(collector: pytest.Collector) -> None:
    if isinstance(collector, pytest.Session):
        import_in_turn(collector.config, lambda path: pytest_ignore_collect(path, collector.config) or False)


def pytest_unconfigure(config: pytest.Config) -> None:
    session = config.stash.get(_SESSION, None)
    if session is not None:
        session.close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make quick` does not even import the other files."""
    if not config.option.markexpr.startswith("quick") or collection_path.suffix != ".py":
        return None
    return not places.is_quick(collection_path) or None


def pytest_itemcollected(item: pytest.Item) -> None:
    if places.is_quick(item.path) and not _needs_postgres(item):
        item.add_marker("quick")
    attacks.record(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    worker: dict[str, object] = getattr(config, "workerinput", {})
    if worker:
        items[:] = dealt(items, int(str(worker["workercount"])))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    """`make attack` prints what was tried and what held."""
    if config.option.markexpr.startswith(attacks.MARKER):
        for line in attacks.table(terminalreporter.stats, whole=exitstatus in _WHOLE):
            terminalreporter.write_line(line)


_WHOLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Where pytest itself broke off it would not even say which tests failed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and exitstatus == pytest.ExitCode.INTERNAL_ERROR:
        session.config.hook.pytest_terminal_summary(
            terminalreporter=reporter, exitstatus=exitstatus, config=session.config
        )


def _needs_postgres(item: pytest.Item) -> bool:
    """Whether one of its parameters or fixtures is a Postgres database."""
    facts = [*getattr(item, "fixturenames", ()), *getattr(getattr(item, "callspec", None), "params", {}).values()]
    return any(isinstance(fact, str) and "postgres" in fact for fact in facts)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI, a skipped test fails unless `skips` says why it may be skipped."""
    try:
        report = yield
    except (SystemError, pluggy.PluggyTeardownRaisedWarning):
        # In Python before 3.11.5 `ast.parse` can fail while threads of a test parse too; that would end the worker.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(item.config.option, "tbstyle", "native")
            report = pytest.TestReport.from_item_and_call(item, call)
    if report.skipped and skips.in_ci() and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if not skips.is_allowed(reason):
            report.outcome = "failed"
            report.longrepr = (
                f"{reason}\nCI must not skip it: install what is missing, or allow it in {skips.__name__}."
            )
    return report


def pytest_report_header() -> str:
    return f"seed: {SEED} (repeat with LEGION_SEED={SEED})"


@pytest.fixture(scope="session")
def seed() -> int:
    """The number that every sampled or random test draws from."""
    return SEED


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """An empty Postgres database of this test's own."""
    with fresh_database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of this test's own: the test runs once on SQLite and once on Postgres."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'legion.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def migrated_postgres_url() -> Iterator[str]:
    """A Postgres database of this test's own with all tables in it."""
    with migrated_database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def migrated_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """As `database_url`, with all tables in it: for whatever is not about how they come there."""
    if request.param == "sqlite":
        return migrated_file(tmp_path / "legion.db")
    url: str = request.getfixturevalue("migrated_postgres_url")
    return url
