"""`legion session`: several branches worked on at once, each with its own target, merge queue and tickets."""

from __future__ import annotations

import os

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import progress, sanitize
from legion.cli.base.parameters import COMPLETIONS
from legion.cli.base.row_command import flag, row_command
from legion.client.text.catalog import session_rows
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import NotFound
from legion.wire.sessions import NamedSession, SessionRows

_ALL = flag("all", "Sessions that ended, too.")
_NEW = "legion session new feature/login\nlegion session new feature/login --base-branch main"
_SWITCH = "legion session switch feature-login\nlegion session switch default"


@command(
    "complete", example="legion session complete feature-login --wait\nlegion session complete epic-1 --into default"
)
@click.argument("name", metavar="NAME", shell_complete=COMPLETIONS["sessions"])
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
        done = call.legion().complete_session(NamedSession(cwd=call.here, name=name))
    call.report(done)
    if into:
        # The branch is the change; no agent has to add to it.
        whole = NewTicket(
            title=f"Land {branch}", text=f"Land the branch {branch} as one change.", branch=branch, command="true"
        )
        made = call.legion().dispatch(Dispatch(cwd=there[into].folder, tickets=[whole], request=os.urandom(16).hex()))
        call.say(f"Ticket {made.ids[0]} lands {sanitize(branch)} in session {sanitize(into)}.")


session = group(
    "session",
    "Sessions: several branches of one repository worked on at once, each with its own target, queue and tickets.\n\n"
    "Every project has the session `default`, on the branch of `legion init`. `--session NAME` on any command acts on "
    "another one.",
    "legion session new feature/login\nlegion session switch default",
    row_command("list", SessionRows.sessions, "legion session list --all", _ALL, shows=session_rows),
    row_command("new", SessionRows.new_session, _NEW, shows=session_rows, waiting="Preparing the session"),
    row_command("switch", SessionRows.switch_session, _SWITCH),
    session_complete,
    row_command("delete", SessionRows.delete_session, "legion session delete feature-login --uncollected"),
    row_command("drop", SessionRows.drop_session, "legion session drop feature-login"),
    row_command("bind", SessionRows.bind_session, "legion session bind feature-login feature/login-2"),
    row_command("rebuild", SessionRows.rebuild_session, "legion session rebuild feature-login"),
    row_command("rebase", SessionRows.rebase_session, "legion session rebase feature-login"),
    row_command("recreate", SessionRows.recreate_session, "legion session recreate feature-login"),
)
