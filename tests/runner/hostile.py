"""A hostile agent: tries forbidden things and says which of them worked. Runs inside a sandbox, with nothing of ours.

    hostile.py FACTS ATTEMPT...      FACTS is JSON: the places and processes of the host that it is after

It prints a line for each attempt: its name, 0 where it worked and 7 where it did not, and why. Each of several attempts
has a process of its own.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORKED, FAILED = 0, 7
MS_REMOUNT, MS_BIND = 32, 4096
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
PTRACE_SEIZE = 0x4206
IO_URING_SETUP = 425
AF_VSOCK = 40
LIBC = ctypes.CDLL(None, use_errno=True)


def call(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def read_the_token(facts: dict[str, Any]) -> None:
    Path(facts["token"]).read_text()


def read_the_ssh_key(facts: dict[str, Any]) -> None:
    Path(facts["ssh_key"]).read_text()


def look_around_at_home(facts: dict[str, Any]) -> None:
    if not list(Path(facts["home"]).iterdir()):
        raise FileNotFoundError("the home folder is empty")


def read_another_worktree(facts: dict[str, Any]) -> None:
    Path(facts["other_worktree"]).read_text()


def read_the_password_hashes(_facts: dict[str, Any]) -> None:
    Path("/etc/shadow").read_text()


def connect_to_a_host_socket(facts: dict[str, Any]) -> None:
    socket.socket(socket.AF_UNIX).connect(facts["socket"])


def connect_to_an_abstract_host_socket(facts: dict[str, Any]) -> None:
    socket.socket(socket.AF_UNIX).connect("\0" + facts["abstract"])


def use_its_own_control_socket(facts: dict[str, Any]) -> None:
    os.chdir(Path(facts["control"]).parent)
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(Path(facts["control"]).name)


def remount_the_system_writable(_facts: dict[str, Any]) -> None:
    call(LIBC.mount(None, b"/usr", None, MS_REMOUNT | MS_BIND, None))


def remount_the_system_writable_in_a_new_user_namespace(_facts: dict[str, Any]) -> None:
    become_root_of_a_namespace(CLONE_NEWNS)
    call(LIBC.mount(None, b"/usr", None, MS_REMOUNT | MS_BIND, None))


def mount_something(facts: dict[str, Any]) -> None:
    call(LIBC.mount(b"none", facts["worktree"].encode(), b"tmpfs", 0, None))


def unmount_the_home_folder(facts: dict[str, Any]) -> None:
    call(LIBC.umount2(facts["home"].encode(), 2))


def unmount_the_home_folder_in_a_new_user_namespace(facts: dict[str, Any]) -> None:
    become_root_of_a_namespace(CLONE_NEWNS)
    call(LIBC.umount2(facts["home"].encode(), 2))


def change_a_kernel_setting(_facts: dict[str, Any]) -> None:
    setting = Path("/proc/sys/kernel/core_pattern")
    setting.write_text(setting.read_text())


def change_a_kernel_setting_through_a_new_proc(facts: dict[str, Any]) -> None:
    become_root_of_a_namespace(CLONE_NEWNS | CLONE_NEWPID)
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        if status:
            raise OSError("the new namespace could not")
        return
    try:
        place = Path(facts["worktree"]) / "proc"
        place.mkdir(exist_ok=True)
        call(LIBC.mount(b"proc", str(place).encode(), b"proc", 0, None))
        setting = place / "sys/kernel/core_pattern"
        setting.write_text(setting.read_text())
        os._exit(0)
    finally:
        os._exit(FAILED)


def press_the_magic_key(_facts: dict[str, Any]) -> None:
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))


def make_a_disk_device(facts: dict[str, Any]) -> None:
    os.mknod(Path(facts["worktree"]) / "disk", 0o60600, os.makedev(254, 0))


def kill_a_host_process(facts: dict[str, Any]) -> None:
    os.kill(facts["victim"], signal.SIGKILL)


def kill_everybody(_facts: dict[str, Any]) -> None:
    os.kill(-1, signal.SIGKILL)


def trace_a_host_process(facts: dict[str, Any]) -> None:
    call(LIBC.ptrace(PTRACE_SEIZE, facts["victim"], None, None))


def read_the_environment_of_a_host_process(facts: dict[str, Any]) -> None:
    content = Path(f"/proc/{facts['victim']}/environ").read_bytes()
    if b"VICTIM" not in content:
        raise OSError("another process has this number here")


def write_into_the_system(_facts: dict[str, Any]) -> None:
    Path("/usr/hostile-agent-was-here").write_text("x")


def write_beside_its_worktree(facts: dict[str, Any]) -> None:
    (Path(facts["worktree"]).parent / "planted").write_text("x")


def write_into_a_readable_folder(facts: dict[str, Any]) -> None:
    (Path(facts["readable"]) / "planted").write_text("x")


def rewrite_its_briefing(facts: dict[str, Any]) -> None:
    # Its stdin first: a handle can be opened anew for writing, and that file is on no read-only mount.
    for path in ("/proc/self/fd/0", facts["briefing"]):
        with Path(path).open("r+") as file:
            file.write("x" * 100)


def outlive_its_run(facts: dict[str, Any]) -> None:
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", facts["marker"]])


def call_the_kernel_through_a_ring(_facts: dict[str, Any]) -> None:
    """What is called so passes no filter of system calls."""
    call(LIBC.syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(120)))


def use_a_ring_that_it_was_given(_facts: dict[str, Any]) -> None:
    for number in (IO_URING_SETUP + 1, IO_URING_SETUP + 2):
        if LIBC.syscall(number, -1, 0, 0, 0, 0, 0) >= 0 or ctypes.get_errno() == errno.EBADF:
            return
    raise OSError(errno.ENOSYS, "the kernel knows no rings")


def reach_the_host_of_a_virtual_machine(_facts: dict[str, Any]) -> None:
    """These sockets are in no network namespace."""
    socket.socket(AF_VSOCK, socket.SOCK_STREAM).close()


def reach_the_host_of_a_virtual_machine_by_datagrams(_facts: dict[str, Any]) -> None:
    socket.socket(AF_VSOCK, socket.SOCK_DGRAM).close()


def become_root_of_a_namespace(flags: int) -> None:
    uid, gid = os.getuid(), os.getgid()
    call(LIBC.unshare(CLONE_NEWUSER | flags))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


ATTEMPTS: dict[str, Callable[[dict[str, Any]], None]] = {
    attempt.__name__: attempt
    for attempt in (
        *(read_the_token, read_the_ssh_key, look_around_at_home, read_another_worktree, read_the_password_hashes),
        *(connect_to_a_host_socket, connect_to_an_abstract_host_socket, use_its_own_control_socket),
        *(remount_the_system_writable, remount_the_system_writable_in_a_new_user_namespace, mount_something),
        *(unmount_the_home_folder, unmount_the_home_folder_in_a_new_user_namespace),
        *(change_a_kernel_setting, change_a_kernel_setting_through_a_new_proc, press_the_magic_key, make_a_disk_device),
        *(kill_a_host_process, kill_everybody, trace_a_host_process, read_the_environment_of_a_host_process),
        *(write_into_the_system, write_beside_its_worktree, write_into_a_readable_folder, rewrite_its_briefing),
        *(call_the_kernel_through_a_ring, use_a_ring_that_it_was_given, outlive_its_run),
        *(reach_the_host_of_a_virtual_machine, reach_the_host_of_a_virtual_machine_by_datagrams),
    )
}


def attempt(name: str, facts: dict[str, Any]) -> None:
    try:
        ATTEMPTS[name](facts)
    except OSError as refused:
        print(name, FAILED, refused, flush=True)
    else:
        print(name, WORKED, f"it worked at {time.time():.0f}", flush=True)


def main(facts: dict[str, Any], names: list[str]) -> None:
    if len(names) == 1:
        attempt(names[0], facts)
        return
    for name in names:
        child = os.fork()
        if child == 0:
            try:
                attempt(name, facts)
            finally:
                os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
