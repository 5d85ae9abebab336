"""Where a process may limit others: by the kernel's files, here made in a folder that stands for the root."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.system import cgroups
from legion.system.cgroups import GroupLimits

MIB = 2**20


def place(root: Path, mounts: str, own: str, *folders: str, offered: str = "cpu memory pids") -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mounts").write_text(mounts)
    (root / "proc/self/cgroup").write_text(own)
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "cgroup.procs").touch()
        (root / folder / "cgroup.subtree_control").write_text(offered)
    return root


UNIFIED = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
SESSION = "sys/fs/cgroup/user.slice/user-7.service"
SPLIT = "cgroup /cg/memory cgroup rw,memory 0 0\ncgroup /cg/pids cgroup rw,pids 0 0\n"


def test_version_two_makes_groups_in_the_nearest_folder_above_that_offers_both_limits(tmp_path: Path):
    own = "0::/user.slice/user-7.service/app.slice/terminal.scope\n"
    root = place(tmp_path, UNIFIED, own, SESSION, f"{SESSION}/app.slice", f"{SESSION}/app.slice/terminal.scope")
    (root / SESSION / "app.slice/cgroup.subtree_control").write_text("cpu pids")
    found = cgroups.find(root)
    assert found is not None
    assert (found.version, set(found.folders.values())) == (2, {root / SESSION})
    assert found.back == {"": root / SESSION / "app.slice/terminal.scope"}


@pytest.mark.parametrize("offered", ["", "memory", "cpu pids"])
def test_version_two_without_both_limits_has_no_place(tmp_path: Path, offered: str):
    own = "0::/user.slice/user-7.service\n"
    assert cgroups.find(place(tmp_path, UNIFIED, own, SESSION, "sys/fs/cgroup", offered=offered)) is None


def test_version_one_has_a_folder_for_each_limit_and_takes_the_root_where_its_own_path_is_hidden(tmp_path: Path):
    own = "4:memory:/box/one\n8:pids:/docker/hidden\n0::/\n"
    root = place(tmp_path, SPLIT, own, "cg/memory/box/one", "cg/pids")
    found = cgroups.find(root)
    assert found is not None
    assert (found.version, found.folders) == (1, {"memory": root / "cg/memory/box/one", "pids": root / "cg/pids"})


@pytest.mark.parametrize("mounts", ["", SPLIT.splitlines()[0], "tmpfs /cg tmpfs rw 0 0"])
def test_without_a_hierarchy_for_both_limits_there_is_no_place(tmp_path: Path, mounts: str):
    assert cgroups.find(place(tmp_path, mounts, "4:memory:/\n8:pids:/\n", "cg/memory", "cg/pids")) is None


def test_a_system_without_these_files_has_no_place(tmp_path: Path):
    assert cgroups.find(tmp_path) is None


def test_the_limit_that_was_reached_is_named(tmp_path: Path):
    root = place(tmp_path, UNIFIED, "0::/\n", "sys/fs/cgroup")
    home = cgroups.find(root)
    assert home is not None
    group = home.group(Path("/runs/1"))
    folder = root / "sys/fs/cgroup/legion" / group.name
    folder.mkdir(parents=True)
    limits = GroupLimits(memory=512 * MIB, processes=9)
    assert group.trouble(limits) == ""
    (folder / "memory.events").write_text("low 0\noom 0\noom_kill 0\n")
    (folder / "pids.events").write_text("max 3\n")
    assert group.trouble(limits) == "It reached its limit of 9 processes (`sandbox.processes`)."
    (folder / "memory.events").write_text("low 0\noom 2\noom_kill 1\n")
    assert group.trouble(limits) == "It reached its memory limit of 0.5 GB (`sandbox.memory_gb`)."
