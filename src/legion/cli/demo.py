"""`legion demo`."""

from __future__ import annotations

import importlib

from legion.cli.command import Call, command


@command("demo", example="legion demo")
def demo(call: Call) -> int:
    """Watch the whole job on a scratch repository, with scripted agents: no key, no network."""
    # By name: the command line itself depends on nothing that the demo needs.
    code = importlib.import_module("legion.demo").main()
    return code if isinstance(code, int) else 0
