"""The files with which systemd and launchd keep a daemon or a machine running, also after a reboot.

Both leave the runs alone when they stop or restart the process: a run outlives it.
"""

from __future__ import annotations

import getpass
import os
import plistlib
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

REMOVED_EXIT = 4
"""The exit code of `legion machine join` on a machine that was removed: starting it again would change nothing."""
_IN_USE_EXIT = 5
"""That of `legion serve` where another daemon has the folder."""
_LINGERING = Path("/var/lib/systemd/linger")
SECONDS_TO_RESTART = 5
_LINE_FILE = "%h/.config/legion/machine.env"
"""For systemd: holds LEGION_JOIN=..., and need not exist."""
MAC_HOME = "/Users/YOU/"
"""launchd has no name for the home folder."""


_SYSTEMD = Path("/run/systemd/system")
"""Exists exactly where systemd runs the system. A user's own systemd has a folder below XDG_RUNTIME_DIR."""


@dataclass(frozen=True, kw_only=True)
class SupervisedProgram:
    """A command that a supervisor keeps running, and its surroundings."""

    name: str
    """A machine's, which is part of the name of the service; empty for the daemon."""
    argv: tuple[str, ...]
    """With the program's full path; for a machine without the line of an invitation."""
    path: str = ""
    """PATH for agent programs; empty: what the supervisor gives."""
    log: str = ""
    """Where launchd writes the output; systemd has a journal."""
    elsewhere: bool = False
    """For a machine that has not joined yet: program and log are below its home, and LEGION_JOIN has the line."""

    @property
    def service(self) -> str:
        return f"legion-machine-{self.name}" if self.name else "legion"

    @property
    def label(self) -> str:
        """The name of the service at launchd."""
        return f"dev.legion.machine.{self.name}" if self.name else "dev.legion.daemon"


@dataclass(frozen=True, kw_only=True)
class ServiceHost:
    """What decides where a service is written."""

    home: Path
    platform: str
    systemd: bool
    config_home: Path
    path: str

    @staticmethod
    def here() -> ServiceHost:
        home, own = Path.home(), Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
        return ServiceHost(
            home=home,
            platform=sys.platform,
            systemd=(_SYSTEMD.is_dir() or (own / "systemd").is_dir()) and shutil.which("systemctl") is not None,
            config_home=Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config"),
            path=os.environ.get("PATH", ""),
        )


@dataclass(frozen=True, kw_only=True)
class ServiceFile:
    file: Path
    text: str
    start: tuple[tuple[str, ...], ...]
    """The commands that start it, now and after each login."""
    end: tuple[tuple[str, ...], ...]
    advice: str = ""
    """What it needs to start without a login."""

    @property
    def commands(self) -> tuple[str, ...]:
        """For a person to run."""
        return (" && ".join(shlex.join(one) for one in self.start), *filter(None, (self.advice,)))


def service_file(program: SupervisedProgram, at: ServiceHost) -> ServiceFile | None:
    """None where neither systemd nor launchd runs."""
    if at.platform == "darwin":
        file, target = at.home / "Library/LaunchAgents" / f"{program.label}.plist", f"gui/{os.getuid()}"
        return ServiceFile(
            file=file,
            text=launchd_plist(program),
            start=(("launchctl", "bootstrap", target, str(file)),),
            end=(("launchctl", "bootout", f"{target}/{program.label}"),),
        )
    if not at.systemd:
        return None
    user = ("systemctl", "--user")
    return ServiceFile(
        file=at.config_home / "systemd/user" / f"{program.service}.service",
        text=systemd_unit(program),
        start=((*user, "daemon-reload"), (*user, "enable", "--now", program.service)),
        end=((*user, "disable", "--now", program.service),),
        advice="loginctl enable-linger  # so that it also runs while you are not logged in",
    )


def daemon_service(data_dir: Path, at: ServiceHost) -> ServiceFile | None:
    """The service of the daemon. None where neither systemd nor launchd runs."""
    argv = (*legion_program(), "--data-dir", str(data_dir), "serve")
    return service_file(SupervisedProgram(name="", argv=argv, path=at.path, log=str(data_dir / "daemon.log")), at)


def starts_with_machine() -> bool:
    """Whether this user's services run without a login."""
    return (_LINGERING / getpass.getuser()).exists()


def write_service(service: ServiceFile) -> None:
    service.file.parent.mkdir(parents=True, exist_ok=True)
    service.file.write_text(service.text)


def legion_program() -> tuple[str, ...]:
    """The program by its full path: the supervisor's PATH may lack it."""
    found = shutil.which("legion")
    return (found,) if found else (sys.executable, "-m", "legion")


def systemd_unit(program: SupervisedProgram) -> str:
    """A unit of the person's own systemd, `systemctl --user`."""
    home = "%h/" if program.elsewhere else ""
    first, *others = program.argv
    settings = [
        # systemd expands variables in all words of a command but the first.
        f"ExecStart={home}{' '.join([_systemd_word(first), *(_systemd_word(word, dollars=True) for word in others)])}",
        *([f"Environment={_systemd_word(f'PATH={program.path}')}"] if program.path else []),
        *([f"EnvironmentFile=-{_LINE_FILE}"] if program.elsewhere else []),
        # `legion down` ends the daemon for good, until the next login or `legion up`.
        f"Restart={'always' if program.name else 'on-failure'}",
        f"RestartSec={SECONDS_TO_RESTART}",
        f"RestartPreventExitStatus={REMOVED_EXIT if program.name else _IN_USE_EXIT}",
        "# Runs outlive the worker, so that a restart or an update costs none of them.",
        "KillMode=process",
        "Delegate=yes",
    ]
    lines = [
        "[Unit]",
        f"Description=Legion{f' machine {_percent(program.name)}' if program.name else ''}",
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


def launchd_plist(program: SupervisedProgram) -> str:
    """An agent of launchd, for ~/Library/LaunchAgents."""
    home = MAC_HOME if program.elsewhere else ""
    first, *others = program.argv
    settings: dict[str, object] = {
        "Label": program.label,
        # A machine is restarted after every exit code, so that it waits where it was removed.
        "ProgramArguments": [home + first, *others, *(["--stay"] if program.name else [])],
        "RunAtLoad": True,
        "KeepAlive": True if program.name else {"SuccessfulExit": False},
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
