"""All commands by name. A command's module is imported when the command is used, never before."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from pathlib import Path

import click
from click.shell_completion import CompletionItem


@dataclass(frozen=True)
class Entry:
    """Where a command lives; `help` is its line in `legion --help`."""

    module: str
    attribute: str
    help: str


SECTIONS: dict[str, dict[str, Entry]] = {
    "Start": {
        "init": Entry("projects", "init", "Make a git repository a project."),
        "trust": Entry("projects", "trust", "Allow what the repository says as it is now."),
        "provider": Entry("provider", "provider", "The providers of your models, and their keys."),
        "route": Entry("route", "route", "Which model is asked where, and where else then."),
        "models": Entry("route", "models", "The models that your providers have."),
        "demo": Entry("demo", "demo", "Watch the whole job on a scratch repository."),
        "record": Entry("record", "record", "Keep what a model says in runs, to play it again."),
        "rehearse": Entry("rehearse", "rehearse", "Play a plan through with scripted replies: nothing is spent."),
    },
    "Ask for work": {
        "dispatch": Entry("dispatch", "dispatch", "Create a ticket, or many from a plan file."),
        "team": Entry("team", "team", "Who works on tickets together: teams."),
        "role": Entry("team", "role", "The roles that teams are made of."),
        "inbox": Entry("inbox", "inbox", "Questions that wait for you."),
        "answer": Entry("inbox", "answer", "Answer a question of an agent."),
        "tell": Entry("telling", "tell", "A message to an agent."),
        "interrupt": Entry("telling", "interrupt", "Interrupt an agent at work."),
        "hire": Entry("hiring", "hire", "Hire an agent that stands."),
        "fire": Entry("hiring", "fire", "Fire an agent; its work is kept."),
        "approve": Entry("claiming", "approve", "Approve the plan of an agent."),
        "reject": Entry("claiming", "reject", "Send the plan of an agent back."),
        "claim": Entry("claiming", "claim", "As an agent: take a ticket from the board."),
        "submit": Entry("claiming", "submit", "As an agent: your ticket's change is whole."),
        "broadcast": Entry("agents", "broadcast", "A message to every agent."),
        "review": Entry("reviews", "review", "Have a ticket's change read."),
        "bounce": Entry("reviews", "bounce", "Send a ticket's change back."),
        "retry": Entry("acting", "retry", "Try an ended ticket again."),
        "stop": Entry("acting", "stop", "Stop a ticket, or all of them."),
        "drop": Entry("acting", "drop", "Take a ticket off the board."),
        "pause": Entry("acting", "pause", "Start nothing new, or hold one ticket."),
        "resume": Entry("acting", "resume", "Go on after a pause."),
        "undo": Entry("acting", "undo", "Take a landed ticket back."),
        "collect": Entry("projects", "collect", "Bring landed changes into your branch."),
    },
    "See": {
        "status": Entry("status", "status", "The project and its tickets on one screen."),
        "agents": Entry("agents", "agents", "Agents that stand, and what each is doing."),
        "mail": Entry("agents", "mail", "Messages to you, and those of agents."),
        "ticket": Entry("ticket", "ticket", "Everything about one ticket."),
        "watch": Entry("following", "watch", "Follow one ticket live until it ends."),
        "events": Entry("events", "events", "What happened, and by which rule."),
        "log": Entry("following", "log", "What a ticket's agent printed."),
        "diff": Entry("diff", "diff", "A ticket's change."),
        "graph": Entry("graph", "graph", "The board as a drawing."),
        "done": Entry("done", "done", "What came of the work since you collected last."),
        "usage": Entry("usage", "usage", "What the work costs: tokens, money, time, waste."),
        "wait": Entry("waiting", "wait", "Wait until tickets have ended."),
        "worktrees": Entry("looking", "worktrees", "Where agents work and worked."),
    },
    "Legion itself": {
        "up": Entry("daemon", "up", "Start Legion in the background."),
        "down": Entry("daemon", "down", "End it; agents at work go on."),
        "serve": Entry("daemon", "serve", "Run it in the foreground."),
        "doctor": Entry("looking", "doctor", "What holds on this machine and what does not."),
        "config": Entry("looking", "config", "Settings in force and where they come from."),
        "mcp": Entry("mcp", "mcp", "Where your own programs find Legion's tools."),
        "completion": Entry("completion", "completion", "Complete commands with the Tab key."),
        "version": Entry("version", "version", "The version of this program."),
    },
}
ENTRIES = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = ENTRIES.get(cmd_name)
        if entry is None:
            return None
        found = getattr(importlib.import_module(f"legion.cli.{entry.module}"), entry.attribute)
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in ENTRIES:
            near = difflib.get_close_matches(args[0], ENTRIES, 1)
            hint = f"; did you mean `legion {near[0]}`?" if near else ""
            raise click.UsageError(f"There is no command `{args[0][:40]}`{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name, help=entry.help) for name, entry in ENTRIES.items() if name.startswith(incomplete)]


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n  legion init\n  legion dispatch -t 'Add a login form' 'A page that ...'\n  legion status -w",
)
@click.option("--json", "json", is_flag=True, help="Answer with one JSON object.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Legion's own folder.")
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR=1 does the same.")
@click.option("--version", "version", is_flag=True, help="Show the version.")
@click.pass_context
def cli(ctx: click.Context, json: bool, data_dir: Path | None, no_color: bool, version: bool) -> None:
    """Legion turns goals into landed code by many coding agents, each in a worktree of its own, checked and merged."""
    if version:
        ctx.invoke(importlib.import_module("legion.cli.version").version, json=json)
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    ctx.obj = {"json": json, "data_dir": data_dir, "no_color": no_color}
