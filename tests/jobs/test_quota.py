"""How much lies in some folders, without walking further than needed; and who was told to stop for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from legion.config.files.user import CurrentSettings, UserConfig
from legion.jobs.workspace import quota
from legion.jobs.workspace.quota import measure
from legion.store.work import runs
from tests.jobs.office import Office
from tests.store.making import add_ticket


def test_all_files_below_count_and_links_count_as_links(tmp_path: Path):
    (tmp_path / "one" / "deep").mkdir(parents=True)
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / "deep" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "two" / "file").write_bytes(b"x" * 50_000)
    (tmp_path / "two" / "link").symlink_to(tmp_path / "one")
    size = measure((tmp_path / "one", tmp_path / "two", tmp_path / "missing"))
    assert size.whole
    assert 150_000 <= size.bytes < 200_000


def test_counting_stops_where_enough_is_known(tmp_path: Path):
    for name in "abcdefgh":
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / name / "below" / "file").write_bytes(b"x" * 100_000)
    assert measure((tmp_path,), enough=150_000).bytes < 400_000
    assert not measure((tmp_path,), enough=150_000).whole
    assert not measure((tmp_path,), most=10).whole


def test_the_word_about_a_run_that_was_stopped_outlives_the_looks_while_it_is_saved(tmp_path: Path):
    """Saving a large tree takes longer than the rest between two looks, and its runner is gone by then."""
    office, user = Office(tmp_path), UserConfig()
    settings = CurrentSettings(replace(user, environment=replace(user.environment, disk_mb=1)))
    context = replace(office.context, settings=settings)
    with context.store.write() as tx:
        run = runs.start(tx, add_ticket(tx, office.project).id, 1)
    for folder in (context.data.runs / run.name, tmp_path / "trees" / run.seat):
        folder.mkdir(parents=True)
    (tmp_path / "trees" / run.seat / "file").write_bytes(b"x" * 3_000_000)
    quota.enforce(context)
    assert quota.exceeded(context, run) is None, "it has just ended by itself"
    (context.data.runs / run.name / "over-quota").write_text("3000000 1048576")
    quota.enforce(context)
    assert quota.exceeded(context, run) is not None
    office.close()
