"""The service that `legion machine join --service` writes: a systemd user unit on Linux, a launchd agent on macOS."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from legion.cli.machines.supervisors import MachineProgram, label, launchd_plist, service_name, systemd_unit
from legion.wire.errors import BadInput

_SYSTEMD = Path("/run/systemd/system")
"""Exists exactly where systemd runs the system."""


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
        home = Path.home()
        return ServiceHost(
            home=home,
            platform=sys.platform,
            systemd=_SYSTEMD.is_dir() and shutil.which("systemctl") is not None,
            config_home=Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config"),
            path=os.environ.get("PATH", ""),
        )


@dataclass(frozen=True, kw_only=True)
class ServiceFile:
    file: Path
    text: str
    commands: tuple[str, ...]
    """What starts it, for the person to run."""


def service_file(machine: str, data_dir: Path, at: ServiceHost) -> ServiceFile:
    """The service of a machine that has joined. Raises BadInput where neither systemd nor launchd runs."""
    program = MachineProgram(
        name=machine,
        argv=(*_legion(), "--data-dir", str(data_dir), "join"),
        path=at.path,
        log=str(data_dir / "machine.log"),
    )
    if at.platform == "darwin":
        file = at.home / "Library/LaunchAgents" / f"{label(machine)}.plist"
        return ServiceFile(
            file=file,
            text=launchd_plist(program),
            commands=(f"launchctl bootstrap gui/$(id -u) {shlex.quote(str(file))}",),
        )
    if at.systemd:
        name = service_name(machine)
        return ServiceFile(
            file=at.config_home / "systemd/user" / f"{name}.service",
            text=systemd_unit(program),
            commands=(
                f"systemctl --user daemon-reload && systemctl --user enable --now {name}",
                "loginctl enable-linger  # so that it also runs while you are not logged in",
            ),
        )
    raise BadInput(
        "Neither systemd nor launchd runs here, so --service has nothing to write: leave it out and keep "
        "`legion machine join` running by a supervisor of yours, or see `legion machine manifest compose`."
    )


def write(service: ServiceFile) -> None:
    service.file.parent.mkdir(parents=True, exist_ok=True)
    service.file.write_text(service.text)


def _legion() -> tuple[str, ...]:
    """The program by its full path: the supervisor's PATH may lack it."""
    found = shutil.which("legion")
    return (found,) if found else (sys.executable, "-m", "legion")
