"""A hostile agent that tries to get out and to see what is not its own. Prints one line per attempt.

hostile_agent.py FACTS      FACTS is JSON: the places of the host that it is after

Runs inside the product's sandbox with nothing of ours but this file, which the test commits to the repository.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

MS_REMOUNT, MS_BIND = 32, 4096
LIBC = ctypes.CDLL(None, use_errno=True)
FACTS: dict[str, str] = {}


class Failed(Exception):
    """It did not work, and the host said why."""


def read_the_token() -> None:
    Path(FACTS["token"]).read_text()


def read_the_daemons_record() -> None:
    Path(FACTS["record"]).read_text()


def read_the_database() -> None:
    Path(FACTS["database"]).read_bytes()


def read_the_ssh_key() -> None:
    Path(FACTS["ssh_key"]).read_text()


def find_anything_at_home() -> None:
    found = [entry.name for entry in Path(FACTS["home"]).iterdir()]
    if FACTS["home_holds"] not in found:
        raise Failed(f"only {found}")


def read_the_persons_checkout() -> None:
    Path(FACTS["checkout"], "README.txt").read_text()


def read_another_worktree() -> None:
    Path(FACTS["other_worktree"], "README.txt").read_text()


def list_the_runs() -> None:
    found = list(Path(FACTS["runs"]).iterdir())
    if len(found) == 1:
        raise Failed("only its own is there")


def reach_the_daemons_socket() -> None:
    socket.socket(socket.AF_UNIX).connect(FACTS["daemon_socket"])


def reach_a_host_socket() -> None:
    socket.socket(socket.AF_UNIX).connect(FACTS["socket"])


def reach_an_abstract_host_socket() -> None:
    socket.socket(socket.AF_UNIX).connect("\0" + FACTS["abstract"])


def remount_the_system() -> None:
    if LIBC.mount(None, b"/usr", None, MS_REMOUNT | MS_BIND, None) != 0:
        raise Failed(os.strerror(ctypes.get_errno()))


def write_beside_its_worktree() -> None:
    Path(FACTS["worktrees"], "planted").write_text("x")
    raise Failed("it went somewhere; the test looks whether it is on the host")


def write_into_the_hub() -> None:
    Path(FACTS["hub"], "objects/planted").write_text("x")


def move_the_target() -> None:
    Path(FACTS["hub"], "refs/legion/target").write_text("0" * 40)


def write_into_the_system() -> None:
    Path("/usr/hostile-agent-was-here").write_text("x")


def become_a_symlink_to_a_secret() -> None:
    here = Path.cwd()
    os.chdir("/")
    try:
        here.rename(f"{here}.moved")
        here.symlink_to(FACTS["home"])
    finally:
        os.chdir(here)


def kill_the_daemon() -> None:
    os.kill(int(FACTS["daemon_pid"]), signal.SIGKILL)


def ask_the_api_without_a_token() -> None:
    ask({})


def ask_the_api_with_a_guessed_token() -> None:
    ask({"Authorization": "Bearer legion"})


def ask_the_api_with_an_empty_token() -> None:
    ask({"Authorization": "Bearer "})


def ask_the_api_with_a_token_in_the_address() -> None:
    ask({}, "?token=legion")


def ask(headers: dict[str, str], query: str = "") -> None:
    place = urlsplit(os.environ["LEGION_URL"])
    line = http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)
    line.request("POST", f"/v1/shutdown{query}", body="{}", headers={"Content-Type": "application/json", **headers})
    answer = line.getresponse()
    if answer.status >= 400:
        raise Failed(f"{answer.status} {json.loads(answer.read())['message']}")


def add_a_forge_through_any_door() -> None:
    """Its key command would run as the person. By every port that Legion listens at, directly and by the proxy."""
    answers = set()
    body = json.dumps({"repository": "a/b", "key_command": f"touch {FACTS['forge_mark']}", "cwd": str(Path.cwd())})
    for port in FACTS["ports"].split():
        for place in ("127.0.0.1", "::1", "localhost", FACTS["host"], "127.1", "0.0.0.0", "169.254.169.254"):
            for proxied in (False, True):
                answers.add(posted(place, int(port), body, proxied))
    if any(status.startswith("2") for status in answers):
        return
    raise Failed(f"{sorted(answers)}")


def posted(place: str, port: int, body: str, proxied: bool) -> str:
    line = http.client.HTTPConnection("127.0.0.1", 3128, timeout=20)
    if proxied:
        line.set_tunnel(place, port)
    else:
        line = http.client.HTTPConnection(place, port, timeout=20)
    secret = next((value for name, value in os.environ.items() if name.endswith("_TOKEN")), "none")
    try:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {secret}", "Host": f"127.0.0.1:{port}"}
        line.request("POST", "/v1/forges", body=body, headers=headers)
        return str(line.getresponse().status)
    except (OSError, http.client.HTTPException) as why:
        return type(why).__name__
    finally:
        line.close()


def outlive_its_run() -> None:
    """Leaves a process behind; whether it lived on is for the test to see."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            for handle in (0, 1, 2):
                os.close(handle)
            os.execv("/bin/sh", ["sh", "-c", f": {FACTS['marker']}; while :; do sleep 60; done"])
        os._exit(0)
    raise Failed("it was started; the test looks whether it is still there")


ATTEMPTS: tuple[Callable[[], None], ...] = (
    *(read_the_token, read_the_daemons_record, read_the_database, read_the_ssh_key, find_anything_at_home),
    *(read_the_persons_checkout, read_another_worktree, list_the_runs),
    *(reach_the_daemons_socket, reach_a_host_socket, reach_an_abstract_host_socket, remount_the_system),
    *(write_beside_its_worktree, write_into_the_hub, move_the_target, write_into_the_system),
    *(become_a_symlink_to_a_secret, kill_the_daemon),
    *(ask_the_api_without_a_token, ask_the_api_with_a_guessed_token, ask_the_api_with_an_empty_token),
    *(ask_the_api_with_a_token_in_the_address, add_a_forge_through_any_door, outlive_its_run),
)

if __name__ == "__main__":
    FACTS.update(json.loads(sys.argv[1]))
    for attempt in ATTEMPTS:
        try:
            attempt()
        except (Failed, OSError) as why:
            print(f"{attempt.__name__}: failed: {why}", flush=True)
        else:
            print(f"{attempt.__name__}: WORKED", flush=True)
