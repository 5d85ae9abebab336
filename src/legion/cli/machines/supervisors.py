"""The texts with which systemd and launchd keep a machine running: pure functions of the program and its folders.

Both leave the runs alone when they stop or restart the machine's process: a run outlives it, as it outlives a daemon.
"""

from __future__ import annotations

import plistlib
from dataclasses import dataclass

REMOVED_EXIT = 4
"""The exit code of `legion machine join` on a machine that was removed: starting it again would change nothing."""
SECONDS_TO_RESTART = 5
_LINE_FILE = "%h/.config/legion/machine.env"
"""For systemd: holds LEGION_JOIN=..., and need not exist."""
MAC_HOME = "/Users/YOU/"
"""launchd has no name for the home folder."""


@dataclass(frozen=True, kw_only=True)
class MachineProgram:
    """The command that runs a machine, and its surroundings."""

    name: str
    """The machine's name; it is part of the name of the service."""
    argv: tuple[str, ...]
    """`legion machine join`, with its full path and its options, but without the line of an invitation."""
    path: str = ""
    """PATH for agent programs; empty: what the supervisor gives."""
    log: str = ""
    """Where launchd writes the output; systemd has a journal."""
    elsewhere: bool = False
    """For a machine that has not joined yet: program and log are below its home, and LEGION_JOIN has the line."""


def service_name(machine: str) -> str:
    return f"legion-machine-{machine}"


def label(machine: str) -> str:
    """The name of a service at launchd."""
    return f"dev.legion.machine.{machine}"


def systemd_unit(program: MachineProgram) -> str:
    """A unit of the person's own systemd, `systemctl --user`."""
    home = "%h/" if program.elsewhere else ""
    first, *others = program.argv
    settings = [
        # systemd expands variables in all words of a command but the first.
        f"ExecStart={home}{' '.join([_systemd_word(first), *(_systemd_word(word, dollars=True) for word in others)])}",
        *([f"Environment={_systemd_word(f'PATH={program.path}')}"] if program.path else []),
        *([f"EnvironmentFile=-{_LINE_FILE}"] if program.elsewhere else []),
        "Restart=always",
        f"RestartSec={SECONDS_TO_RESTART}",
        f"RestartPreventExitStatus={REMOVED_EXIT}",
        "# Runs outlive the worker, so that a restart or an update costs none of them.",
        "KillMode=process",
        "Delegate=yes",
    ]
    lines = [
        "[Unit]",
        f"Description=Legion machine {_percent(program.name)}",
        "After=network-online.target",
        "Wants=network-online.target",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        *settings,
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def _systemd_word(word: str, *, dollars: bool = False) -> str:
    """One word of a setting: quoted where needed, with nothing left that systemd would expand."""
    escaped = _percent(word.replace("\\", "\\\\").replace('"', '\\"'))
    if dollars:
        escaped = escaped.replace("$", "$$")
    plain = word and all(letter.isalnum() or letter in "/._-+=:@,%$" for letter in word)
    return escaped if plain else f'"{escaped}"'


def _percent(text: str) -> str:
    return text.replace("%", "%%")


def launchd_plist(program: MachineProgram) -> str:
    """An agent of launchd, for ~/Library/LaunchAgents."""
    home = MAC_HOME if program.elsewhere else ""
    first, *others = program.argv
    settings: dict[str, object] = {
        "Label": label(program.name),
        # launchd restarts after every exit code.
        "ProgramArguments": [home + first, *others, "--stay"],
        "RunAtLoad": True,
        "KeepAlive": True,
        "ThrottleInterval": SECONDS_TO_RESTART,
        # Else launchd kills the runs together with the worker.
        "AbandonProcessGroup": True,
        # Else macOS slows the agents down as background work.
        "ProcessType": "Interactive",
    }
    variables = {"PATH": program.path} if program.path else {}
    if program.elsewhere:
        variables["LEGION_JOIN"] = "LINE"
    if variables:
        settings["EnvironmentVariables"] = variables
    if program.log:
        settings |= {"StandardOutPath": home + program.log, "StandardErrorPath": home + program.log}
    return plistlib.dumps(settings, sort_keys=False).decode()
