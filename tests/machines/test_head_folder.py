"""A database belongs to the data folder of its head: hubs, runs and certificates are there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.daemon.standby import Leadership
from legion.domain.errors import StateConflict
from legion.store.database.errors import LeaseHeld
from legion.store.database.transactions import Store
from legion.system.paths import DataDir

OTHER = "belongs to another data folder"


@contextlib.contextmanager
def leading(url: str, folder: Path) -> Iterator[DataDir]:
    data = DataDir(folder)
    data.prepare()
    with contextlib.closing(Store(url)) as store:
        head = Leadership(url, data, store)
        try:
            head.start()
            yield data
        finally:
            head.stop()


def test_a_head_or_standby_with_another_data_folder_is_refused(migrated_postgres_url: str, tmp_path: Path):
    url = migrated_postgres_url
    with leading(url, tmp_path / "one"), pytest.raises(StateConflict, match=OTHER), leading(url, tmp_path / "two"):
        pass
    with pytest.raises(StateConflict, match=OTHER), leading(url, tmp_path / "two"):
        pass
    with leading(url, tmp_path / "one") as data:
        # Killed before it wrote the file.
        data.head_generation.unlink()
    with leading(url, tmp_path / "one"):
        pass
    assert not (tmp_path / "two" / "head-generation").exists()


def test_the_same_folder_under_another_path_serves_in_turn(migrated_postgres_url: str, tmp_path: Path):
    """As the other of two hosts mounts it."""
    url = migrated_postgres_url
    with leading(url, tmp_path / "one"):
        (tmp_path / "mounted").symlink_to(tmp_path / "one")
        with pytest.raises(LeaseHeld), leading(url, tmp_path / "mounted"):
            pass
    with leading(url, tmp_path / "mounted"):
        pass
    with leading(url, tmp_path / "one"):
        pass
