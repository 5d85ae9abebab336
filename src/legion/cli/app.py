"""The table of all commands. A command's module is imported only when the command is used."""

from __future__ import annotations

import copy
import difflib
import importlib
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem


@dataclass(frozen=True)
class CommandEntry:
    """A command's module and attribute; `help` is its line in `legion --help`."""

    module: str
    attribute: str
    help: str
    first: bool = False
    """Whether a person needs it in the first week: it is on the first screen."""


SECTIONS: dict[str, dict[str, CommandEntry]] = {
    "Start": {
        "init": CommandEntry("project.setup", "init", "Make a git repository a project.", first=True),
        "trust": CommandEntry("project.setup", "trust", "Allow the repository's settings to run commands.", first=True),
        "provider": CommandEntry(
            "models.provider", "provider", "Providers of your models, and their keys.", first=True
        ),
        "provider account": CommandEntry("models.provider", "account", "Several logins at one provider."),
        "provider route": CommandEntry("models.provider", "route", "Which provider answers for which model."),
        "provider models": CommandEntry("models.provider", "models", "The models that your providers have."),
        "driver": CommandEntry("models.driver", "driver", "Agent programs: which there are, what they can do."),
        "forge": CommandEntry("forge.forge", "forge", "GitHub or a git remote: issues in, pull requests out."),
        "forge assign": CommandEntry("forge.forge", "assign", "Make tickets of issues."),
        "forge sync": CommandEntry("forge.forge", "sync", "Look at the project's forge now."),
        "plugin": CommandEntry("plugin.command", "plugin", "Legion in your own Claude Code."),
        "plugin mcp": CommandEntry("system.program", "mcp", "The address of Legion's tools for your programs."),
        "import": CommandEntry("imports.command", "import_command", "Bring work of other tools along."),
        "demo": CommandEntry("system.program", "demo", "Watch a complete run on a scratch repository.", first=True),
        "doctor": CommandEntry(
            "project.doctor", "doctor", "Check this machine, the daemon and the project.", first=True
        ),
    },
    "Ask for work": {
        "dispatch": CommandEntry(
            "tickets.dispatch", "dispatch", "Create a ticket, or many from a plan file.", first=True
        ),
        "plan": CommandEntry("plans.plan", "plan", "Have tickets planned for a goal.", first=True),
        "plan list": CommandEntry("plans.plan", "plans", "Plans, and what each waits for."),
        "plan reject": CommandEntry("plans.decisions", "reject", "Send a plan back with a reason."),
        "plan split": CommandEntry("plans.plan", "split", "Plan several tickets in place of one."),
        "plan replan": CommandEntry("plans.plan", "replan", "Plan what is left of an epic."),
        "plan template": CommandEntry("plans.template", "template", "Templates of plans."),
        "plan routine": CommandEntry("plans.template", "routine", "Tickets that start by time or event."),
        "plan rehearse": CommandEntry(
            "models.rehearse", "rehearse", "Run a plan with scripted replies: nothing is spent."
        ),
        "plan record": CommandEntry("models.rehearse", "record", "Record model answers, to replay a run."),
        "approve": CommandEntry("plans.decisions", "approve", "Approve a plan, or part of it.", first=True),
    },
    "See": {
        "status": CommandEntry("board.status", "status", "The project and its tickets on one screen.", first=True),
        "status projects": CommandEntry("board.status", "projects", "The projects of this daemon."),
        "status epic": CommandEntry("plans.epic", "epic", "An epic: progress, cost, what landed."),
        "status queue": CommandEntry("tickets.queue", "queue", "The merge queue: what lands next."),
        "status pr": CommandEntry("forge.pulls", "pr", "Pull requests of tickets, and what each waits for."),
        "status graph": CommandEntry("board.status", "graph", "The board as a drawing."),
        "status events": CommandEntry("board.events", "events", "The log of events, and the rule behind each."),
        "status done": CommandEntry("board.status", "done", "A summary of the work since your last collect."),
        "status worktrees": CommandEntry("project.doctor", "worktrees", "The worktrees of agents, and the trash."),
        "ticket": CommandEntry("tickets.ticket", "ticket", "Everything about one ticket.", first=True),
        "log": CommandEntry("tickets.log", "log", "The output of a ticket's agent.", first=True),
        "log watch": CommandEntry("tickets.log", "watch", "Follow one ticket live until it ends."),
        "diff": CommandEntry("tickets.ticket", "diff", "A ticket's change.", first=True),
        "usage": CommandEntry("board.usage", "usage", "Costs: tokens, money, time, waste.", first=True),
        "wait": CommandEntry("tickets.wait", "wait", "Wait until tickets have ended."),
        "web": CommandEntry("system.web", "web", "The board in a browser, also on a phone.", first=True),
    },
    "Answer and talk": {
        "inbox": CommandEntry("board.inbox", "inbox", "Questions that wait for you.", first=True),
        "inbox mail": CommandEntry("agents.mail", "mail", "Messages to you, or to an agent."),
        "answer": CommandEntry("board.inbox", "answer", "Answer a question of an agent.", first=True),
        "tell": CommandEntry("agents.tell", "tell", "Send a message to an agent.", first=True),
        "tell all": CommandEntry("agents.tell", "broadcast", "Send a message to every agent."),
        "tell interrupt": CommandEntry("agents.tell", "interrupt", "Interrupt an agent at work."),
        "tell chat": CommandEntry("leader.chat", "chat", "Talk to the leader of this project."),
        "attach": CommandEntry("attach.attach", "attach", "Sit down at an agent's terminal, or take over.", first=True),
        "attach shell": CommandEntry("attach.attach", "shell", "A shell in a ticket's worktree."),
        "attach new": CommandEntry("attach.attach", "new", "Work together with an agent in a terminal."),
        "attach own": CommandEntry("attach.attach", "handoff", "Continue a ticket in your own terminal."),
        "attach adopt": CommandEntry("attach.attach", "adopt", "Make a ticket of a Claude Code conversation of yours."),
    },
    "Steer and land": {
        "edit": CommandEntry("tickets.edit", "edit", "Change a ticket before it starts."),
        "retry": CommandEntry("tickets.edit", "retry", "Send a ticket back to its agent, with a text.", first=True),
        "retry race": CommandEntry("tickets.edit", "race", "Several attempts of a ticket at once."),
        "review": CommandEntry("tickets.ticket", "review", "Have a ticket's change reviewed."),
        "try": CommandEntry("tickets.queue", "try_changes", "Open a tree with changes that have not landed."),
        "try report": CommandEntry("forge.pulls", "test", "Try a change by hand; record the result."),
        "pause": CommandEntry(
            "tickets.actions", "pause", "Hold a ticket, or start nothing new; `resume` continues.", first=True
        ),
        "resume": CommandEntry("tickets.actions", "resume", "Resume after a pause."),
        "stop": CommandEntry("tickets.actions", "stop", "Stop a ticket, or all of them.", first=True),
        "drop": CommandEntry("tickets.actions", "drop", "Remove a ticket from the board."),
        "rewind": CommandEntry("tickets.actions", "rewind", "Return a ticket to an earlier moment."),
        "undo": CommandEntry("tickets.actions", "undo", "Revert a landed ticket.", first=True),
        "checkout": CommandEntry("attach.attach", "checkout", "A ticket's work as a branch of yours."),
        "checkout push": CommandEntry("attach.attach", "push", "Push a ticket's work to your remote."),
        "session": CommandEntry("project.session", "session", "Sessions: several branches worked on at once."),
        "land": CommandEntry("tickets.queue", "land", "Land a change that waits for you.", first=True),
        "land pulls": CommandEntry("forge.pulls", "merge", "Merge approved, green pull requests."),
        "collect": CommandEntry("project.setup", "collect", "Bring landed changes into your branch.", first=True),
    },
    "Agents and machines": {
        "agents": CommandEntry("agents.tell", "agents", "Standing agents, and what each is doing."),
        "agents hire": CommandEntry("agents.hire", "hire", "Hire a standing agent."),
        "agents fire": CommandEntry("agents.hire", "fire", "Fire an agent; its work is kept."),
        "agents delegate": CommandEntry("agents.hire", "delegate", "Let an agent only lead, or work again."),
        "agents claim": CommandEntry("agents.hire", "claim", "As an agent: take a ticket from the board."),
        "agents submit": CommandEntry("agents.hire", "submit", "Submit your ticket's change."),
        "team": CommandEntry("agents.team", "team", "Teams: the roles that work on tickets."),
        "team role": CommandEntry("agents.team", "role", "The roles that teams are made of."),
        "note": CommandEntry("leader.notes", "notes", "What agents should know: decisions, promises, lessons."),
        "note remember": CommandEntry("leader.notes", "remember", "Tell agents of this project something for good."),
        "note memories": CommandEntry("leader.notes", "memories", "What agents of this project should know."),
        "note forget": CommandEntry("leader.notes", "forget", "Forget a memory."),
        "note lessons": CommandEntry("leader.notes", "lessons", "What failures taught; accept what is proposed."),
        "machine": CommandEntry("machines.command", "machine", "The head and its machines: invite, pause, drain."),
        "machine join": CommandEntry("machines.command", "join", "Make this host a machine of another Legion."),
        "machine head": CommandEntry("system.head", "head", "Back up, restore or move the state of Legion."),
        "conversations": CommandEntry(
            "conversations.listing", "conversations", "Conversations of your own agent programs."
        ),
        "conversations search": CommandEntry("conversations.listing", "search", "Search in all conversations."),
        "conversations ask": CommandEntry("conversations.reports", "ask", "Ask a finished conversation."),
        "conversations export": CommandEntry("conversations.reports", "export", "One conversation as a document."),
        "conversations analytics": CommandEntry(
            "conversations.reports", "analytics", "How much you and your agents talked."
        ),
        "conversations health": CommandEntry(
            "conversations.reports", "health", "Conversations that are stale, large or orphaned."
        ),
    },
    "Legion itself": {
        "up": CommandEntry("system.daemon", "up", "Start Legion in the background."),
        "up update": CommandEntry("system.installation", "update", "Bring this installation to the newest release."),
        "down": CommandEntry("system.daemon", "down", "Stop it; running agents continue."),
        "down uninstall": CommandEntry("system.installation", "uninstall", "Remove all of Legion from this machine."),
        "config": CommandEntry("project.doctor", "config", "The settings in force, and their origin."),
        "config workers": CommandEntry("project.doctor", "workers", "How many agents work at once."),
        "config retries": CommandEntry("project.doctor", "retries", "How often a ticket is tried."),
        "config completion": CommandEntry("system.program", "completion", "Complete commands with the Tab key."),
    },
}
"""By what a person wants to do. A name of two words is a part of the command before it."""

UNLISTED = {
    "help": CommandEntry("system.program", "help_command", "The help of a command; of all: `legion help all`."),
    "tui": CommandEntry("system.tui", "tui", "The terminal UI; `legion` alone opens it, too."),
    "serve": CommandEntry("system.daemon", "serve", "Run Legion in the foreground, for a service."),
    "version": CommandEntry("system.program", "version", "The version of this program."),
    "spawn": CommandEntry("conversations.orchestra", "spawn", "Create a ticket for each task."),
    "cleanup": CommandEntry("conversations.orchestra", "cleanup", "Remove ended tickets from the board."),
    "sessions": CommandEntry("conversations.orchestra", "sessions", "Another name for `conversations`."),
    "start": CommandEntry("system.old_names", "start", "legion_cc's name for `legion`."),
    "squad": CommandEntry("system.old_names", "squad", "legion_cc's name for `legion`."),
    "switch": CommandEntry("system.old_names", "switch", "Show the providers and how to switch."),
    "native": CommandEntry("imports.native", "native", "Teams and tasks of Claude Code's Agent Teams."),
    "export-beads": CommandEntry("imports.export_beads", "export_beads", "The project's tickets as beads."),
}
"""Words of other tools, and what stands in options, services and other commands."""

ENTRIES = {name: entry for section in (*SECTIONS.values(), UNLISTED) for name, entry in section.items()}

_NEW_WORDS = ("tell all", "attach own", "plan list", "try report", "land pulls")
OLD_NAMES = {
    **{words.split()[1]: words for words in ENTRIES if " " in words and words not in _NEW_WORDS},
    "broadcast": "tell all",
    "handoff": "attach own",
    "plans": "plan list",
    "test": "try report",
    "merge": "land pulls",
    "fix": "retry",
    "bounce": "retry --one",
    "resume-stuck": "retry --stuck",
    "freeze": "pause --all",
    "thaw": "resume --all",
    "notes": "note",
    "machines": "machine list",
}
"""Names that earlier releases and other tools use, and what each is called now. They go on working."""


class Family(click.Command):
    """A command whose first word may be one of its parts: `legion plan GOAL`, and `legion plan split N`."""

    def __init__(self, name: str, own: click.Command, parts: dict[str, CommandEntry]) -> None:
        super().__init__(name, help=own.help, epilog=own.epilog, params=own.params)
        self.own = copy.copy(own)
        self.parts = parts
        width = max(len(part) for part in parts)
        listed = "\n".join(f"  {name} {part:{width}}  {entry.help}" for part, entry in parts.items())
        self.own.epilog = f"\b\nAlso:\n{listed}\n\n{own.epilog}"

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in self.parts:
            part = _load(self.parts[args[0]])
            return part.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        made = self.own.make_context(info_name, args, parent, **extra)
        if extra.get("resilient_parsing") and not args:
            # Completion asks the context's command: this one also knows the parts.
            made.command = self
        return made

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        parts = [CompletionItem(one, help=it.help) for one, it in self.parts.items() if one.startswith(incomplete)]
        return [*parts, *self.own.shell_complete(ctx, incomplete)]


def find_command(name: str) -> click.Command | None:
    """By its words, of which an old name counts, too; options that an old name stands for are left out."""
    words = [word for word in OLD_NAMES.get(name, name).split() if not word.startswith("-")]
    entry = ENTRIES.get(" ".join(words))
    if entry is None:
        return None
    found = _load(entry)
    parts = {one.removeprefix(f"{name} "): it for one, it in ENTRIES.items() if one.startswith(f"{name} ")}
    return Family(name, found, parts) if parts else found


def _load(entry: CommandEntry) -> click.Command:
    found = getattr(importlib.import_module(f"legion.cli.{entry.module}"), entry.attribute)
    assert isinstance(found, click.Command)
    return found


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in ENTRIES if " " not in name]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find_command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        now = OLD_NAMES.get(args[0]) if args else None
        if now is not None:
            if {"-h", "--help"} & set(args[1:2]):
                click.echo(f"`legion {args[0]}` is now `legion {now}`; both work.\n")
            args = [*now.split(), *args[1:]]
        elif args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            near = difflib.get_close_matches(args[0], [*self.list_commands(ctx), *OLD_NAMES], 1)
            hint = f"; did you mean `legion {near[0]}`?" if near else ""
            raise click.UsageError(f"There is no command `{args[0][:40]}`{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One screen: what a person needs in the first week."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        for title, entries in SECTIONS.items():
            first = [(name, entry.help) for name, entry in entries.items() if entry.first]
            if first:
                with formatter.section(title):
                    formatter.write_dl(first)
        formatter.write("\n`legion` alone opens the terminal UI; `legion help all` lists every command.\n")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        top = [(name, entry) for name, entry in ENTRIES.items() if " " not in name and name.startswith(incomplete)]
        return [CompletionItem(name, help=entry.help) for name, entry in top]


def help_of_all(ctx: click.Context) -> str:
    """Every command, and the options that stand before a command."""
    formatter = ctx.make_formatter()
    click.Command.format_options(cli, ctx, formatter)
    for title, entries in SECTIONS.items():
        with formatter.section(title):
            formatter.write_dl(_lines(entries))
    with formatter.section("Not needed by hand"):
        formatter.write_dl([(name, entry.help) for name, entry in UNLISTED.items()])
    formatter.write("\nNames of earlier releases, and what they are called now:\n")
    old_names = ", ".join(f"{old} = {now}" for old, now in OLD_NAMES.items())
    formatter.write(textwrap.indent(textwrap.fill(old_names, formatter.width - 2, break_on_hyphens=False), "  "))
    return formatter.getvalue()


def _lines(entries: dict[str, CommandEntry]) -> Iterable[tuple[str, str]]:
    """A line for each command that stands alone; what it also has is named below it."""
    for name, entry in entries.items():
        if " " in name:
            continue
        parts = [one.removeprefix(f"{name} ") for one in entries if one.startswith(f"{name} ")]
        yield name, f"{entry.help} Also: {', '.join(parts)}." if parts else entry.help


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
@click.option("--session", metavar="NAME", default="", help="Act on this session of the project.")
@click.option("--version", "version", is_flag=True, help="Show the version.")
@click.option("--base-port", type=click.IntRange(1, 65535), metavar="N", help="legion_cc's option; without effect.")
@click.pass_context
def cli(
    ctx: click.Context,
    json: bool,
    data_dir: Path | None,
    no_color: bool,
    session: str,
    version: bool,
    base_port: int | None,
) -> None:
    """Goals become landed code: many coding agents, each in a worktree, checked, merged."""
    if version:
        ctx.invoke(importlib.import_module("legion.cli.system.program").version, json=json)
    ctx.obj = {"json": json, "data_dir": data_dir, "no_color": no_color, "session": session}
    if ctx.invoked_subcommand is None and base_port is not None:
        ctx.invoke(importlib.import_module("legion.cli.system.old_names").squad, base_port=base_port)
    elif ctx.invoked_subcommand is None and not version:
        # In a terminal, `legion` alone opens the terminal UI before it comes here: see main.py.
        click.echo(ctx.get_help())
