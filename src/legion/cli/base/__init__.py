"""Shared parts of commands: options, output, live screens, exit codes."""
