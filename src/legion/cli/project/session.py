"""`legion session`: several branches worked on at once, each with its own target, merge queue and tickets."""

from __future__ import annotations

import os
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import sanitize
from legion.cli.base.parameters import completes
from legion.cli.base.progress import progress
from legion.client.text.catalog import session_rows
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import NotFound
from legion.wire.sessions import BindSession, DeleteSession, NamedSession, NewSession

_names = completes(lambda legion: ((one.name, one.branch) for one in legion.sessions(str(Path.cwd())).sessions))
_NAME = click.argument("name", metavar="NAME", shell_complete=_names)


@command("list", example="legion session list --all")
@click.option("--all", "every", is_flag=True, help="Sessions that ended, too.")
def session_list(call: CommandCall, every: bool) -> None:
    """The sessions of this repository: branch, open tickets, landed commits to collect."""
    found = call.legion().sessions(call.cwd, every)
    call.show(found, session_rows)


@command("new", example="legion session new feature/login\nlegion session new feature/login --base-branch main")
@click.argument("branch", metavar="[BRANCH]", required=False, default="")
@click.option("--name", metavar="NAME", default="", help="Its name; the branch with - for / if left out.")
@click.option("--base-branch", metavar="B", default="", help="Make BRANCH in your repository, from this branch.")
def session_new(call: CommandCall, branch: str, name: str, base_branch: str) -> None:
    """Make a session for a branch, the one that is checked out if left out, and act on it.

    It has a target, a merge queue, tickets and agents of its own. Your checkout stays as it is.
    """
    wanted = NewSession(
        cwd=call.here,
        branch=branch,
        name=name,
        base=base_branch,
    )
    with progress("Preparing the session"):
        found = call.legion().new_session(wanted)
    call.show(found, session_rows)


@command("switch", example="legion session switch feature-login\nlegion session switch default")
@_NAME
def session_switch(call: CommandCall, name: str) -> None:
    """Act on another session, in all commands that name none. Agents of both go on working."""
    call.report(call.legion().switch_session(_named(call, name)))


@command(
    "complete", example="legion session complete feature-login --wait\nlegion session complete epic-1 --into default"
)
@_NAME
@click.option("-w", "--wait", is_flag=True, help="First wait until all its tickets have ended.")
@click.option("--into", metavar="SESSION", default="", help="Then land its branch as one change in this session.")
def session_complete(call: CommandCall, name: str, wait: bool, into: str) -> None:
    """Collect what landed into its branch, and end the session.

    With --into, a ticket of the other session lands the branch as one change, checked like any other: so a session
    can be the integration branch of an epic.
    """
    there = {one.name: one for one in call.legion().sessions(call.here).sessions}
    if into and into not in there:
        raise NotFound(f"There is no session {sanitize(into)[:60]}; the sessions are {', '.join(there)}.")
    branch = next((one.branch for one in there.values() if name in (one.name, one.branch)), "")
    if wait:
        from legion.cli.tickets.wait import until_settled

        call.session = name
        until_settled(call, [], all_projects=False, timeout=None)
    with progress("Collecting"):
        done = call.legion().complete_session(_named(call, name))
    call.report(done)
    if into:
        # The branch is the change; no agent has to add to it.
        whole = NewTicket(
            title=f"Land {branch}", text=f"Land the branch {branch} as one change.", branch=branch, command="true"
        )
        made = call.legion().dispatch(Dispatch(cwd=there[into].folder, tickets=[whole], request=os.urandom(16).hex()))
        call.say(f"Ticket {made.ids[0]} lands {sanitize(branch)} in session {sanitize(into)}.")


@command("delete", example="legion session delete feature-login --uncollected")
@_NAME
@click.option("--uncollected", is_flag=True, help="Also if landed work was not collected; it is kept in the trash.")
def session_delete(call: CommandCall, name: str, uncollected: bool) -> None:
    """End a session without collecting. Its branch stays; worktrees and hub are kept in the trash."""
    wanted = DeleteSession(cwd=call.here, name=name, uncollected=uncollected)
    call.report(call.legion().delete_session(wanted))


@command("drop", example="legion session drop feature-login")
@_NAME
def session_drop(call: CommandCall, name: str) -> None:
    """Remove an ended session from `legion session list --all`."""
    call.report(call.legion().drop_session(_named(call, name)))


@command("bind", example="legion session bind feature-login feature/login-2")
@_NAME
@click.argument("branch", metavar="BRANCH")
def session_bind(call: CommandCall, name: str, branch: str) -> None:
    """Bind a session to another branch, after a rename for example. What landed is collected there."""
    wanted = BindSession(cwd=call.here, name=name, branch=branch)
    call.report(call.legion().bind_session(wanted))


@command("rebuild", example="legion session rebuild feature-login")
@_NAME
def session_rebuild(call: CommandCall, name: str) -> None:
    """Start again from its branch as it is, after a rebase for example. The old target is kept in the hub."""
    call.report(call.legion().rebuild_session(_named(call, name)))


@command("rebase", example="legion session rebase feature-login")
@_NAME
def session_rebase(call: CommandCall, name: str) -> None:
    """Start again from its branch as it is, and land on it again what was not collected, as one checked change."""
    call.report(call.legion().rebase_session(_named(call, name)))


@command("recreate", example="legion session recreate feature-login")
@_NAME
def session_recreate(call: CommandCall, name: str) -> None:
    """Make its branch again, where you deleted it, at the last commit of it that you had."""
    call.report(call.legion().recreate_session(_named(call, name)))


session = group(
    "session",
    "Sessions: several branches of one repository worked on at once, each with its own target, queue and tickets.\n\n"
    "Every project has the session `default`, on the branch of `legion init`. `--session NAME` on any command acts on "
    "another one.",
    "legion session new feature/login\nlegion session switch default",
    *(session_list, session_new, session_switch, session_complete, session_delete, session_drop),
    *(session_bind, session_rebuild, session_rebase, session_recreate),
)


def _named(call: CommandCall, name: str) -> NamedSession:
    return NamedSession(cwd=call.here, name=name)
