"""Commands that set up and collect a project: init, trust, collect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, count, progress, reveal_lines, sanitize, sanitize_lines
from legion.cli.base.parameters import folders
from legion.client.http import NotRunning
from legion.client.legion import Legion
from legion.wire.errors import BadInput, NotFound, Retryable
from legion.wire.projects import AddProject, CollectResult, ProjectAdded, TrialPage, Trust, TrustText, TryChecks, Where


@command("init", example="legion init\nlegion init ~/src/shop --dry-run")
@click.argument("path", default=".", shell_complete=folders)
@click.option("--dry-run", is_flag=True, help="Show what would be written; change nothing.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the trial of the checks; it runs in the background.")
@click.option("--remove", is_flag=True, help="Forget the project; the repository stays as it is.")
def init(call: CommandCall, path: str, dry_run: bool, no_wait: bool, remove: bool) -> None:
    """Make a git repository a project.

    Writes a legion.toml guessed from the content of the repository, unless there is one, and trusts what it wrote.
    Then tries the checks: on the code as it is, and with an error planted in it, which they must notice before a
    change lands on them. Ctrl-C leaves that to the background.
    """
    if dry_run and remove:
        raise click.UsageError("--dry-run and --remove exclude each other", click.get_current_context())
    place = Path(call.here, path).expanduser()
    # The folder of a project that is removed may no longer exist.
    if not place.is_dir() and not remove:
        raise NotFound(f"There is no folder {sanitize(str(place))}; pass the folder of a git repository.")
    legion = call.legion()
    if remove:
        gone = legion.remove_project(str(place))
        call.report(gone)
        return
    call.use_shell(str(place))
    with progress("Preparing the project"):
        added = legion.add_project(AddProject(path=str(place), dry_run=dry_run))
    wanted = added.trusted and not dry_run and not no_wait and bool(added.checks)
    if wanted and call.json:
        added = replace(added, trial=follow_trial(call, added.root))
    call.answer(added, lambda: _added(added, call.screen))
    call.notes(added.notes)
    if call.json:
        return
    found = follow_trial(call, added.root) if wanted else None
    for line in () if found is None else _trial_lines(found, call.screen):
        call.out(line)
    if not added.trusted and not dry_run:
        call.say("Next: read legion.toml, then legion trust")
    elif not dry_run and (found is None or found.trusted or not found.remedy):
        call.say("Next: legion dispatch -t TITLE TEXT, or legion plan 'GOAL'")


def _added(added: ProjectAdded, screen: Screen) -> Iterator[str]:
    if added.dry_run:
        yield from sanitize_lines(added.config_text.rstrip("\n"))
        return
    yield screen.line(Cell(sanitize(added.name), Colour.BOLD), Cell(" is a project of Legion."))
    written = (
        "written, and trusted"
        if added.wrote_config
        else "found" + (", trusted" if added.trusted else ", not trusted yet")
    )
    facts = [
        ("repository", added.root),
        ("branch", added.branch),
        ("settings", f"{added.config_file} ({written})"),
        ("setup", added.setup or "none"),
        *((f"check {name}", run) for name, run in added.checks.items()),
        *([] if added.checks else [("checks", "none: changes land unchecked")]),
        ("worktrees", added.worktrees),
        ("hub", f"{added.hub} (Legion's own copy: work lands there)"),
    ]
    yield from screen.table([[Cell(name, Colour.DIM), Cell(sanitize(value))] for name, value in facts])


_TRIAL_WAIT = 20.0
"""Seconds of one request."""


def follow_trial(call: CommandCall, cwd: str, *, again: bool = False) -> TrialPage | None:
    """Start the trial if it is due and wait for its end. None: the person left it to the background."""
    try:
        found = call.legion().try_checks(TryChecks(cwd=cwd, again=again))
        while found.state in ("due", "running"):
            steps = found.steps
            step = sanitize(steps[-1]) if steps else "waits for its turn"
            with progress(f"Trying the checks: {step}", "Ctrl-C leaves it to the background"):
                while found.state in ("due", "running") and found.steps == steps:
                    found = call.legion().trial(cwd, found.number, _TRIAL_WAIT)
    except KeyboardInterrupt:
        call.say("The trial of the checks continues in the background; `legion doctor` shows what it finds.")
        return None
    return found


def _trial_lines(found: TrialPage, screen: Screen) -> Iterator[str]:
    """What was found; the last line says whether the checks see the code."""
    for line in found.lines:
        yield from screen.paragraph(sanitize(line), indent=2)
    if found.remedy and not found.trusted:
        yield screen.line(Cell("  No change lands before that is done:", Colour.YELLOW))
        yield from screen.paragraph(sanitize(found.remedy), indent=4)


@command("trust", example="legion trust --show\nlegion trust")
@click.option("--show", is_flag=True, help="Only show the texts that can be trusted, complete.")
def trust(call: CommandCall, show: bool) -> None:
    """Trust the settings of this project's repository: exactly the texts that this command prints.

    These are its legion.toml and the roles and teams in .legion/, as they landed, and as they are in your checkout
    where that differs. No command of a text runs, and no role of it counts, before it is trusted.
    """
    legion = call.legion()
    found = legion.trustable(call.cwd)
    if show:
        call.answer(found, lambda: _texts(found.texts, call.screen))
        return
    # If all texts were trusted before, trusting puts them in force again.
    shown = [text for text in found.texts if not text.trusted] or found.texts
    # Also with --json: a person must see what is trusted.
    for line in _texts(shown, call.screen):
        call.say(line)
    done = legion.trust(Trust(cwd=call.cwd, hashes=[text.hash for text in shown]))
    call.report(done)


def _texts(texts: list[TrustText], screen: Screen) -> Iterator[str]:
    """The complete texts, uncut: they are what is trusted."""
    for text in texts:
        state = "trusted" if text.trusted else "not trusted yet"
        place = {"landed": "as landed", "checkout": "in your checkout"}.get(text.place, sanitize(text.place))
        yield screen.bold(f"{sanitize(text.file)}, {place} ({text.hash[:12]}, {state})")
        yield from (f"  {line}".rstrip() for line in reveal_lines(text.text.rstrip("\n")))
        if text.difference:
            yield screen.bold("What changed since you trusted it last:")
            yield from (_changed(line, screen) for line in reveal_lines(text.difference))


def _changed(line: str, screen: Screen) -> str:
    colour = {"+": Colour.GREEN, "-": Colour.RED, "@": Colour.CYAN}.get(line[:1], Colour.NONE)
    return screen.paint(f"  {line}".rstrip(), colour)


@command("collect", example="legion collect --wait\nlegion collect --dry-run")
@click.option(
    "-w",
    "--wait",
    is_flag=True,
    help="First wait until all tickets of the project have ended and your own commits are checked.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be collected, and change nothing.")
def collect(call: CommandCall, wait: bool, dry_run: bool) -> int:
    """Bring landed changes into your branch, by fast-forward only.

    The only command that writes to your repository. If it is not safe, it explains why and changes nothing.
    """
    if wait and dry_run:
        raise BadInput("--wait and --dry-run do not go together: leave one of them out.")
    code = 0
    if wait:
        from legion.cli.tickets.wait import until_settled

        code = until_settled(call, [], all_projects=False, timeout=None).code
        got = _collect_in_time(call)
    else:
        got = call.legion().preview_collect(call.cwd) if dry_run else _collect(call.cwd, call.legion())
    call.report(got)
    if got.commits and not call.json:
        moved = f"{sanitize(got.branch)}: {got.old[:9]} to {got.new[:9]}"
        call.say(f"{moved}, {count(got.commits, 'commit')}, {count(got.files, 'file')}.")
    return code


def _collect(cwd: str, legion: Legion) -> CollectResult:
    with progress("Collecting"):
        return legion.collect(Where(cwd=cwd))


def _collect_in_time(call: CommandCall) -> CollectResult:
    """Retry after each event of the project while the daemon answers that it is too early."""
    from legion.cli.base.live import with_retry

    noted = False
    while True:
        seen = with_retry(call, lambda legion: legion.wait(call.cwd, [], timeout=0)).last_event
        try:
            return with_retry(call, partial(_collect, call.cwd))
        except NotRunning:
            raise
        except Retryable:
            if not noted:
                call.say("Waiting until your own commits are checked; Ctrl-C ends only the waiting.")
            noted = True
        with_retry(call, partial(_next_event, call.cwd, seen))


def _next_event(cwd: str, after: int, legion: Legion) -> None:
    """Wait until something happens in the project, or the daemon goes away."""
    next((event for event in legion.events(after, cwd=cwd) if event is not None), None)
