"""The terminal driver as the daemon sees it: any interactive program, for a person that attaches to it."""

from __future__ import annotations

import importlib

from legion.drivers import Driver, Program
from legion.drivers.profile import Capabilities, DriverProfile, PreparedRun, RunRequest
from legion.drivers.terminal_options import TerminalOptions
from legion.system import files


class TerminalProfile(DriverProfile):
    """The program gets its briefing typed, and as a file that LEGION_BRIEFING names."""

    name: str = "terminal"
    title: str = "a program in a terminal"
    capabilities: Capabilities = Capabilities(interrupts=True, interactive=True)
    needs_command: bool = True

    def load(self) -> Driver:
        made: Driver = importlib.import_module("legion.drivers.terminal.driver").TerminalDriver()
        return made

    def prepare(self, request: RunRequest) -> PreparedRun:
        file = request.given / "briefing.md"
        given = request.input
        files.write_atomic(file, f"{given.rules}\n\n{given.prompt}".strip(), mode=0o644)
        env = {"TERM": "xterm-256color", **request.env, "LEGION_BRIEFING": str(file)}
        return PreparedRun(
            program=Program(argv=request.argv, cwd=request.tree, env=env, terminal=True),
            options=TerminalOptions(prompt=given.prompt).to_json(),
        )

    def interactive(self, request: RunRequest) -> PreparedRun:
        return self.prepare(request)
