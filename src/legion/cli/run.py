"""Runs one command and turns its result or error into an exit code and at most one sentence.

0 ok · 1 failed · 2 usage · 3 not found · 4 not allowed · 5 conflict · 6 checks failed · 75 try again · 130 interrupted
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

from legion.cli.app import cli
from legion.cli.base.streams import replace_unknown_characters
from legion.wire.errors import BadInput, LegionError, problem_of

COMPLETE = "_LEGION_COMPLETE"
INTERRUPTED = 130


def run(arguments: Sequence[str]) -> int:
    """The exit code of `legion ARGUMENTS...`."""
    replace_unknown_characters()
    instruction = os.environ.get(COMPLETE)
    if instruction:
        return shell_complete(cli, {}, "legion", COMPLETE, instruction)
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("Interrupted.\n")
        return INTERRUPTED
    except BrokenPipeError:
        close_quietly()
        return 0
    except click.ClickException as error:
        return _print_error(arguments, BadInput(_sentence(error)))
    except LegionError as error:
        return _print_error(arguments, error)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _print_error(arguments, LegionError(f"The system refused: {where}{error.strerror or error}."))
    except Exception as error:  # the last resort: print a sentence instead of a traceback
        if os.environ.get("LEGION_DEBUG"):
            raise
        kind = type(error).__name__
        message = f"This is a bug in Legion ({kind}: {error}); run it with LEGION_DEBUG=1 to see where."
        return _print_error(arguments, LegionError(message))
    return code


def _invoke(arguments: Sequence[str]) -> int:
    try:
        with cli.make_context("legion", list(arguments)) as context:
            result = cli.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    return result if isinstance(result, int) else 0


def _sentence(error: click.ClickException) -> str:
    message = error.format_message().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    if message.endswith("?"):
        return message
    if context is None:
        return f"{message}."
    return f"{message}; see `{context.command_path} --help`."


def _print_error(arguments: Sequence[str], error: LegionError) -> int:
    try:
        if _wants_json(arguments):
            sys.stdout.write(json.dumps(vars(problem_of(error))) + "\n")
            sys.stdout.flush()
        else:
            sys.stdout.flush()
            sys.stderr.write(" ".join(error.message.split()) + "\n")
    except BrokenPipeError:
        close_quietly()
    return error.exit_code


def _wants_json(arguments: Sequence[str]) -> bool:
    """Also for arguments that could not be parsed."""
    meant = list(arguments)
    if "--" in meant:
        meant = meant[: meant.index("--")]
    return "--json" in meant


def close_quietly() -> None:
    """Redirect stdout to the null device, so that Python does not report the broken pipe when it exits."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
