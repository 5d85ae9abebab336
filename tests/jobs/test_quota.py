"""How much lies in some folders, without walking further than needed."""

from __future__ import annotations

from pathlib import Path

from legion.jobs.quota import measure


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
