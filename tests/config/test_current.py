"""The person's settings while their file changes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from legion.config.files.user import CurrentSettings, UserConfig, load

_SOON = 0.2
"""Seconds: a caller that does not wait for the file has its answer by then."""


def slots(config: UserConfig) -> int:
    return config.daemon.slots


def test_a_caller_waits_for_the_file_that_another_one_is_reading(tmp_path: Path):
    file, changed = tmp_path / "config.toml", tmp_path / "changed.toml"
    file.write_text("[daemon]\nslots = 3\n")
    current = CurrentSettings(load(file))
    # A pipe in its place: a read of it ends when the test wants it to.
    file.unlink()
    os.mkfifo(file)
    changed.write_text("[daemon]\nslots = 4\n")
    with ThreadPoolExecutor() as pool:
        first = pool.submit(current.get)
        with file.open("w") as being_read:
            second = pool.submit(current.get)
            wait([second], timeout=_SOON)
            changed.rename(file)
            being_read.write("[daemon]\nslots = 4\n")
        assert slots(first.result(60)) == 4
        assert slots(second.result(60)) == 4


def test_an_invalid_file_leaves_the_last_valid_settings_and_is_reported(tmp_path: Path):
    file = tmp_path / "config.toml"
    file.write_text("[daemon]\nslots = 3\n")
    current = CurrentSettings(load(file))
    file.write_text("[daemon]\nslots = 'many'\n")
    assert slots(current.get()) == 3
    assert "slots" in current.complaint
    file.write_text("[daemon]\nslots = 5\n")
    assert slots(current.get()) == 5
    assert current.complaint == ""
