"""The table of all commands. A command's module is imported only when the command is used."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from pathlib import Path

import click
from click.shell_completion import CompletionItem


@dataclass(frozen=True)
class CommandEntry:
    """A command's module and attribute; `help` is its line in `legion --help`."""

    module: str
    attribute: str
    help: str


SECTIONS: dict[str, dict[str, CommandEntry]] = {
    "Start": {
        "init": CommandEntry("project.setup", "init", "Make a git repository a project."),
        "trust": CommandEntry("project.setup", "trust", "Allow the repository's settings to run commands."),
        "provider": CommandEntry("models.provider", "provider", "Providers of your models, and their keys."),
        "account": CommandEntry("models.account", "account", "Several logins at one provider."),
        "driver": CommandEntry("models.driver", "driver", "Agent programs: which there are, what they can do."),
        "plugin": CommandEntry("plugin.command", "plugin", "Legion in your own Claude Code."),
        "forge": CommandEntry("forge.forge", "forge", "GitHub or a git remote: issues in, pull requests out."),
        "route": CommandEntry("models.route", "route", "Which provider answers for which model."),
        "models": CommandEntry("models.route", "models", "The models that your providers have."),
        "import": CommandEntry("imports.command", "import_command", "Bring work of other tools along."),
        "demo": CommandEntry("system.program", "demo", "Watch a complete run on a scratch repository."),
        "record": CommandEntry("tickets.record", "record", "Record model answers, to replay a run."),
        "rehearse": CommandEntry("models.rehearse", "rehearse", "Run a plan with scripted replies: nothing is spent."),
    },
    "Ask for work": {
        "dispatch": CommandEntry("tickets.dispatch", "dispatch", "Create a ticket, or many from a plan file."),
        "plan": CommandEntry("plans.plan", "plan", "Have tickets planned for a goal."),
        "approve": CommandEntry("plans.decisions", "approve", "Approve a plan, or part of it."),
        "reject": CommandEntry("plans.decisions", "reject", "Send a plan back with a reason."),
        "split": CommandEntry("plans.plan", "split", "Plan several tickets in place of one."),
        "replan": CommandEntry("plans.plan", "replan", "Plan what is left of an epic."),
        "template": CommandEntry("plans.template", "template", "Templates of plans."),
        "routine": CommandEntry("leader.routine", "routine", "Tickets that start by time or event."),
        "race": CommandEntry("tickets.race", "race", "Several attempts of a ticket at once."),
        "chat": CommandEntry("leader.chat", "chat", "Talk to the leader of this project."),
        "assign": CommandEntry("forge.issues", "assign", "Make tickets of issues."),
        "new": CommandEntry("attach.by_hand", "new", "Work together with an agent in a terminal."),
        "adopt": CommandEntry("conversations.adopt", "adopt", "Make a ticket of a Claude Code conversation of yours."),
    },
    "See": {
        "tui": CommandEntry("system.tui", "tui", "The terminal UI; `legion` alone opens it, too."),
        "web": CommandEntry("system.web", "web", "The same in a browser, also on a phone."),
        "status": CommandEntry("board.status", "status", "The project and its tickets on one screen."),
        "projects": CommandEntry("board.projects", "projects", "The projects of this daemon, and where they are."),
        "ticket": CommandEntry("tickets.ticket", "ticket", "Everything about one ticket."),
        "plans": CommandEntry("plans.plan", "plans", "Plans, and what each waits for."),
        "epic": CommandEntry("plans.epic", "epic", "An epic: progress, cost, what landed."),
        "watch": CommandEntry("tickets.log", "watch", "Follow one ticket live until it ends."),
        "log": CommandEntry("tickets.log", "log", "The output of a ticket's agent."),
        "diff": CommandEntry("tickets.diff", "diff", "A ticket's change."),
        "graph": CommandEntry("board.graph", "graph", "The board as a drawing."),
        "queue": CommandEntry("tickets.queue", "queue", "The merge queue: what lands next."),
        "pr": CommandEntry("forge.pulls", "pr", "Pull requests of tickets, and what each waits for."),
        "events": CommandEntry("board.events", "events", "The log of events, and the rule behind each."),
        "done": CommandEntry("board.done", "done", "A summary of the work since your last collect."),
        "usage": CommandEntry("board.usage", "usage", "Costs: tokens, money, time, waste."),
        "wait": CommandEntry("tickets.wait", "wait", "Wait until tickets have ended."),
        "worktrees": CommandEntry("project.doctor", "worktrees", "The worktrees of agents, and the trash."),
    },
    "Answer and talk": {
        "inbox": CommandEntry("board.inbox", "inbox", "Questions that wait for you."),
        "answer": CommandEntry("board.inbox", "answer", "Answer a question of an agent."),
        "tell": CommandEntry("agents.tell", "tell", "Send a message to an agent."),
        "interrupt": CommandEntry("agents.tell", "interrupt", "Interrupt an agent at work."),
        "attach": CommandEntry("attach.attach", "attach", "Sit down at an agent's terminal, or take over."),
        "shell": CommandEntry("attach.shell", "shell", "A shell in a ticket's worktree."),
        "mail": CommandEntry("agents.mail", "mail", "Messages to you, or to an agent."),
        "broadcast": CommandEntry("agents.listing", "broadcast", "Send a message to every agent."),
    },
    "Steer tickets": {
        "edit": CommandEntry("tickets.edit", "edit", "Change a ticket before it starts."),
        "retry": CommandEntry("tickets.edit", "retry", "Try an ended ticket again."),
        "fix": CommandEntry("forge.pulls", "fix", "Send a ticket's change back, or try it again."),
        "bounce": CommandEntry("tickets.reviews", "bounce", "Send a ticket's change back."),
        "review": CommandEntry("tickets.reviews", "review", "Have a ticket's change reviewed."),
        "test": CommandEntry("forge.pulls", "test", "Try a ticket's change by hand; record the result."),
        "try": CommandEntry("tickets.queue", "try_changes", "Open a tree with changes that have not landed."),
        "pause": CommandEntry("tickets.actions", "pause", "Start nothing new, or hold one ticket."),
        "resume": CommandEntry("tickets.actions", "resume", "Resume after a pause."),
        "stop": CommandEntry("tickets.actions", "stop", "Stop a ticket, or all of them."),
        "drop": CommandEntry("tickets.actions", "drop", "Remove a ticket from the board."),
        "rewind": CommandEntry("tickets.actions", "rewind", "Return a ticket to an earlier moment."),
        "undo": CommandEntry("tickets.actions", "undo", "Revert a landed ticket."),
        "checkout": CommandEntry("attach.by_hand", "checkout", "A ticket's work as a branch of yours."),
        "push": CommandEntry("attach.by_hand", "push", "Push a ticket's work to your remote."),
        "handoff": CommandEntry("conversations.adopt", "handoff", "Continue a ticket in your own terminal."),
        "resume-stuck": CommandEntry("forge.pulls", "resume_stuck", "Get a ticket that is stuck moving again."),
        "freeze": CommandEntry("project.numbers", "freeze", "Stop every agent of every project."),
        "thaw": CommandEntry("project.numbers", "thaw", "Resume what a freeze stopped."),
        "workers": CommandEntry("project.numbers", "workers", "How many agents work at once."),
        "retries": CommandEntry("project.numbers", "retries", "How often a ticket is tried."),
        "session": CommandEntry("project.session", "session", "Sessions: several branches worked on at once."),
    },
    "Land": {
        "land": CommandEntry("tickets.queue", "land", "Land a change that waits for you."),
        "merge": CommandEntry("forge.pulls", "merge", "Merge approved, green pull requests."),
        "sync": CommandEntry("forge.forge", "sync", "Look at the project's forge now."),
        "collect": CommandEntry("project.setup", "collect", "Bring landed changes into your branch."),
    },
    "Standing agents": {
        "hire": CommandEntry("agents.hire", "hire", "Hire a standing agent."),
        "delegate": CommandEntry("agents.hire", "delegate", "Let an agent only lead, or work again."),
        "fire": CommandEntry("agents.hire", "fire", "Fire an agent; its work is kept."),
        "agents": CommandEntry("agents.listing", "agents", "Standing agents, and what each is doing."),
        "team": CommandEntry("agents.team", "team", "Teams: the roles that work on tickets."),
        "role": CommandEntry("agents.team", "role", "The roles that teams are made of."),
        "notes": CommandEntry("leader.notes", "notes", "Decisions, promises and open threads."),
        "remember": CommandEntry("project.memory", "remember", "Tell agents of this project something for good."),
        "memories": CommandEntry("project.memory", "memories", "What agents of this project should know."),
        "forget": CommandEntry("project.memory", "forget", "Forget a memory."),
        "lessons": CommandEntry("leader.lessons", "lessons", "What failures taught; accept what is proposed."),
        "claim": CommandEntry("agents.claim", "claim", "As an agent: take a ticket from the board."),
        "submit": CommandEntry("agents.claim", "submit", "Submit your ticket's change."),
    },
    "Machines": {
        "machines": CommandEntry("machines.listing", "machines", "The head and its machines."),
        "machine": CommandEntry("machines.command", "machine", "One machine: invite, pause, drain, update, remove."),
        "join": CommandEntry("machines.invite", "join", "Make this host a machine of another Legion."),
    },
    "Conversations": {
        "conversations": CommandEntry(
            "conversations.listing", "conversations", "Conversations of your own agent programs."
        ),
        "search": CommandEntry("conversations.listing", "search", "Search in all conversations."),
        "ask": CommandEntry("conversations.ask", "ask", "Ask a finished conversation."),
        "export": CommandEntry("conversations.reports", "export", "One conversation as a document."),
        "analytics": CommandEntry("conversations.reports", "analytics", "How much you and your agents talked."),
        "health": CommandEntry("conversations.reports", "health", "Conversations that are stale, large or orphaned."),
    },
    "Words of other tools": {
        "spawn": CommandEntry("conversations.orchestra", "spawn", "Create a ticket for each task."),
        "cleanup": CommandEntry("conversations.orchestra", "cleanup", "Remove ended tickets from the board."),
        "sessions": CommandEntry("conversations.orchestra", "sessions", "Another name for `conversations`."),
        "start": CommandEntry("system.old_names", "start", "legion_cc's name for `legion`."),
        "squad": CommandEntry("system.old_names", "squad", "legion_cc's name for `legion`."),
        "switch": CommandEntry("system.old_names", "switch", "Show the providers and how to switch."),
        "native": CommandEntry("imports.native", "native", "Teams and tasks of Claude Code's Agent Teams."),
        "export-beads": CommandEntry("imports.export_beads", "export_beads", "The project's tickets as beads."),
    },
    "Legion itself": {
        "up": CommandEntry("system.daemon", "up", "Start Legion in the background."),
        "down": CommandEntry("system.daemon", "down", "Stop it; running agents continue."),
        "serve": CommandEntry("system.daemon", "serve", "Run it in the foreground."),
        "head": CommandEntry("system.head", "head", "Back up, restore or move the state of Legion."),
        "doctor": CommandEntry("project.doctor", "doctor", "Check this machine, the daemon and the project."),
        "config": CommandEntry("project.doctor", "config", "The settings in force, and their origin."),
        "mcp": CommandEntry("system.program", "mcp", "The address of Legion's tools for your programs."),
        "completion": CommandEntry("system.program", "completion", "Complete commands with the Tab key."),
        "version": CommandEntry("system.program", "version", "The version of this program."),
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
    """Legion turns goals into landed code with many coding agents, each in its own worktree, checked and merged."""
    if version:
        ctx.invoke(importlib.import_module("legion.cli.system.program").version, json=json)
    ctx.obj = {"json": json, "data_dir": data_dir, "no_color": no_color, "session": session}
    if ctx.invoked_subcommand is None and base_port is not None:
        ctx.invoke(importlib.import_module("legion.cli.system.old_names").squad, base_port=base_port)
    elif ctx.invoked_subcommand is None and not version:
        # In a terminal, `legion` alone opens the terminal UI before it comes here: see main.py.
        click.echo(ctx.get_help())
