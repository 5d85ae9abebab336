"""The filter of system calls: what it refuses and what it lets through, on the numbers of both kinds of machines."""

from __future__ import annotations

import errno
import platform
import re
import struct
import sys
from pathlib import Path

import pytest

from legion.runner import seccomp
from legion.runner.probe import probe
from legion.runner.sandbox import Sandbox, wrap
from legion.runner.seccomp import MACHINES, Architecture
from legion.system.process import FinishedProcess, run

ALLOWED, REFUSED, ABSENT = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
NEW_USER, THREAD = 0x10000000, 0x003D0F00
ORDINARY = range(500)
NEEDED = {
    "x86_64": {
        "read": 0,
        "write": 1,
        "mmap": 9,
        "ptrace": 101,
        "fork": 57,
        "execve": 59,
        "seccomp": 317,
        "openat2": 437,
    },
    "aarch64": {"read": 63, "write": 64, "mmap": 222, "ptrace": 117, "execve": 221, "seccomp": 277, "openat2": 437},
}


def answer(filter: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the kernel would answer: the program, run step by step over the facts of one call."""
    facts = struct.pack("=IIQ6Q", number, arch, 0, *arguments, *([0] * (6 - len(arguments))))
    steps = [struct.unpack_from("=HBBI", filter, at) for at in range(0, len(filter), 8)]
    at = loaded = 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (loaded,) = struct.unpack_from("=I", facts, value)
            case 0x06:
                return int(value)
            case 0x15:
                at += then if loaded == value else otherwise
            case 0x35:
                at += then if loaded >= value else otherwise
            case 0x45:
                at += then if loaded & value else otherwise


@pytest.fixture(params=sorted(MACHINES))
def machine(request: pytest.FixtureRequest) -> Architecture:
    return MACHINES[request.param]


def test_each_number_has_its_answer_and_nothing_else_is_refused(machine: Architecture):
    filter = seccomp.assemble(machine)
    found = {number: answer(filter, machine.arch, number) for number in ORDINARY}
    assert {number for number, said in found.items() if said == REFUSED} == set(machine.refused)
    assert {number for number, said in found.items() if said == ABSENT} == {425, 426, 427, 435}
    assert set(found.values()) == {ALLOWED, REFUSED, ABSENT}


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_what_programs_need_is_allowed(name: str):
    machine = MACHINES[name]
    assert {answer(seccomp.assemble(machine), machine.arch, one) for one in NEEDED[name].values()} == {ALLOWED}


def test_threads_and_processes_start_but_no_user_namespaces(machine: Architecture):
    filter = seccomp.assemble(machine)
    for call in (machine.clone, machine.unshare):
        assert answer(filter, machine.arch, call, THREAD) == ALLOWED
        assert answer(filter, machine.arch, call, 17 | 0x20000000) == ALLOWED, "other namespaces need rights anyway"
        assert answer(filter, machine.arch, call, NEW_USER | 17) == REFUSED
        assert answer(filter, machine.arch, call, 0xFFFFFFFF_00000000 | NEW_USER) == REFUSED


def test_no_program_types_into_a_terminal(machine: Architecture):
    filter = seccomp.assemble(machine)
    requests = {
        request: answer(filter, machine.arch, machine.ioctl, 0, request) for request in (0x5412, 0x541C, 0x5401)
    }
    assert requests == {0x5412: REFUSED, 0x541C: REFUSED, 0x5401: ALLOWED}
    assert answer(filter, machine.arch, machine.ioctl, 0x5412, 0) == ALLOWED, "the first argument is the file"
    assert answer(filter, machine.arch, machine.ioctl, 0, 0xFFFFFFFF_00005412) == REFUSED, "the kernel reads 32 bits"


def test_no_socket_leads_to_the_host_of_a_virtual_machine(machine: Architecture):
    filter = seccomp.assemble(machine)
    families = {family: answer(filter, machine.arch, machine.socket, family) for family in (1, 2, 10, 16, 40)}
    assert families == {1: ALLOWED, 2: ALLOWED, 10: ALLOWED, 16: ALLOWED, 40: REFUSED}
    assert answer(filter, machine.arch, machine.socket, 0xFFFFFFFF_00000028) == REFUSED, "the kernel reads 32 bits"


def test_calls_of_another_kind_of_machine_are_unknown(machine: Architecture):
    filter = seccomp.assemble(machine)
    for arch in (0x40000003, 0x40000028, *(other.arch for other in MACHINES.values() if other is not machine)):
        assert {answer(filter, arch, number) for number in ORDINARY} == {ABSENT}


def test_the_second_set_of_calls_on_x86_64_is_unknown():
    machine = MACHINES["x86_64"]
    assert answer(seccomp.assemble(machine), machine.arch, 0x40000000 | 272, NEW_USER) == ABSENT


def test_the_numbers_are_those_of_this_machines_headers():
    headers = [Path("/usr/include/asm-generic/unistd.h"), *Path("/usr/include").glob("*/asm/unistd_64.h")]
    text = "".join(path.read_text() for path in headers if path.exists())
    known = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    if platform.machine() not in MACHINES or "clone" not in known:
        pytest.skip("there are no headers of the kernel here")
    machine = MACHINES[platform.machine()]
    names = ("mount", "umount2", "pivot_root", "setns", "add_key", "request_key", "keyctl", "bpf", "perf_event_open")
    more = ("userfaultfd", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot")
    newer = ("swapon", "swapoff", "open_by_handle_at", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount")
    assert {known[name] for name in (*names, *more, *newer, "fspick", "mount_setattr")} <= set(machine.refused)
    by_argument = ("clone", "unshare", "ioctl", "socket")
    assert [getattr(machine, name) for name in by_argument] == [known[name] for name in by_argument]
    rings = {known[f"io_uring_{name}"] for name in ("setup", "enter", "register")}
    assert {answer(seccomp.assemble(machine), machine.arch, number) for number in rings} == {ABSENT}


def inside(*argv: str, filtered: bool = True) -> FinishedProcess:
    filter = seccomp.program() if filtered else None
    sandbox = Sandbox(home=Path("/home/ada"), filtered=filtered)
    env = {"PATH": "/usr/bin:/bin"}
    wrapped = wrap(argv, sandbox, cwd=Path("/tmp"), env=env, filter=None if filter is None else 0)
    return run(wrapped.argv, env=wrapped.env, stdin=filter or b"", timeout=60)


needs_filter = pytest.mark.skipif(
    sys.platform != "linux" or not probe(None).filters_calls, reason="there is no sandbox with a filter here"
)


@needs_filter
def test_in_a_real_sandbox_a_user_namespace_is_refused_and_a_build_works():
    refused = inside("unshare", "--user", "true")
    assert refused.code != 0
    assert "not permitted" in refused.complaint
    if inside("unshare", "--user", "true", filtered=False).code != 0:
        pytest.skip("this kernel allows no user namespaces at all")
    compiled = "{ command -v gcc > /dev/null || exit 0; } && gcc a.c -o a && ./a"
    built = inside("sh", "-c", f"git init -q x && echo 'int main() {{return 0;}}' > a.c && {compiled}")
    assert built.code == 0, built.complaint
