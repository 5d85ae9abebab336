"""One batch of the merge queue: a chain of candidates, and the tests that decide how much of it lands.

Parts of the chain are tested until it is known which prefix is green and which change turns it red.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from legion.config.files.project import FILE, hash_of, parse
from legion.domain.checks import CheckResult, HookKind, failed_commands
from legion.domain.errors import BadInput
from legion.domain.events import EventKind
from legion.domain.forge.connections import ForgeKind, TicketPull
from legion.domain.forge.issues import ticket_branch
from legion.domain.forge.pulls import PullStage
from legion.domain.landing import queue
from legion.domain.landing.queue import BisectProbe, BisectState
from legion.domain.tickets.ladder import next_try
from legion.domain.tickets.ticket import Park, ParkReason, Recheck, Ticket
from legion.git.hub.repository import TARGET
from legion.git.merge import candidates
from legion.git.merge.candidates import MergeCandidate, MergeConflict
from legion.jobs import person_hooks
from legion.jobs.attempts import feedback
from legion.jobs.board import Board
from legion.jobs.checks import approvals, execution, trial
from legion.jobs.checks.candidates import ChainLink, candidate, may_be_there, of_batch, part, sent_back_for_conflict
from legion.jobs.checks.execution import CheckedCommit, WantedCheck
from legion.jobs.checks.job import confirmed, refuse_broken
from legion.jobs.checks.ticket_watch import cancelling
from legion.jobs.context import Context
from legion.jobs.landing import gate, target
from legion.jobs.landing.queue import refuse_upstream, send_back, settle_upstream, stop_for_approval
from legion.jobs.landing.speculation import Speculation, of_chain
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace.command import Cancelled, CancelToken
from legion.jobs.workspace.save import AUTHOR
from legion.store.board import forges, projects, receipts, tickets
from legion.system import crash
from legion.system.crash import Point
from legion.system.loops import call_each

_FIX = "fix that and commit again"


@dataclass(frozen=True, kw_only=True)
class _CheckedChain:
    links: tuple[ChainLink, ...]
    tested: CheckedCommit
    """The result of the checks on its tip."""


@dataclass(frozen=True, kw_only=True)
class Blame:
    """The change that turns the batch red."""

    ticket: Ticket
    against: CheckedCommit
    alone: bool
    """It is red on the target without any other change."""


@dataclass(frozen=True, kw_only=True)
class BatchResult:
    changes: int
    """Tickets whose changes were tested."""
    green: bool
    agents_only: bool
    """The result says something about agents' changes: the person's commits are not to blame."""
    blamed: Blame | None = None


class Batch:
    """Tickets, and the person's commits where they wait, on the present target."""

    def __init__(
        self, context: Context, project: ProjectContext, tickets: Sequence[Ticket], *, with_upstream: bool
    ) -> None:
        self._context = context
        self._project = project
        self._start = project.target
        self._tickets = frozenset(ticket.id for ticket in tickets)
        self._chain = self._build(tickets, with_upstream)
        self._cancel = CancelToken()

    def land(self, speculation: Speculation, others: frozenset[int], *, hold: bool = False) -> BatchResult | None:
        """Test the chain and move the target to what is green. None where nothing was tested.

        `others` are tickets that speculation leaves alone, apart from those of this batch. `hold`: do not move the
        target; what is green waits for the person.
        """
        if not self._chain or self._refuse_unreadable_settings() or self._stop_for_repositories():
            return None
        self._project = self._with_upstream_settings()
        tip, taken = self._chain[-1].commit, others | self._tickets
        ahead = contextlib.nullcontext() if hold else speculation.while_testing(self._project, tip, taken)
        members = [link.ticket for link in self._chain if link.ticket is not None]
        try:
            with cancelling(self._context, members, self._cancel), ahead as early, self._noted():
                search, tried = self._search(speculation, early)
        except Cancelled:
            # A person stopped one of the tickets: the others are tested without it.
            speculation.give_up()
            return None
        moved = search.lands is None or self._finish(tried[search.lands], hold=hold)
        return self._result(search, tried, blame=moved)

    def _finish(self, green: _CheckedChain, *, hold: bool) -> bool:
        """Move the target to what is green, or let it wait. False where a person moved one of the tickets meanwhile."""
        if not hold:
            if self._refused_by_hook(green.links) or self._is_unproven(green.links):
                return False
            land = offer if self._tickets and self._project.config.landing.by_pull_request else target.move
            return land(self._context, self._project, self._start, green.links)
        for link in green.links:
            if link.ticket is not None:
                gate.stop_for_person(self._context, link.ticket, green.tested.receipts)
        return True

    def _is_unproven(self, links: Sequence[ChainLink]) -> bool:
        """Whether the tickets wait because their checks were not shown to see the code. The person's commits do not."""
        members = [link.ticket for link in links if link.ticket is not None]
        step = trial.stops(self._context, self._project, members, tip=links[-1].commit) if members else None
        if step is None:
            return False
        for ticket in members:
            send_back(self._context, ticket, step, EventKind.WARNING)
        return True

    def _refused_by_hook(self, links: Sequence[ChainLink]) -> bool:
        """The first change that the person's hook does not let land goes back; the others are tested again."""
        for link in links:
            if link.ticket is None:
                continue
            facts = {**person_hooks.ticket_facts(link.ticket), "candidate": link.commit}
            text = person_hooks.refusal(self._context, self._project.record, HookKind.BEFORE_LAND, facts)
            if text is not None:
                step = next_try(link.ticket, "a hook of the person sent it back", feedback.sent_back_by_hook(text))
                send_back(self._context, link.ticket, step)
                return True
        return False

    def _result(self, search: BisectState, tried: dict[BisectProbe, _CheckedChain], *, blame: bool) -> BatchResult:
        changes = sum(1 for link in self._chain if link.ticket is not None)
        culprit = None if search.culprit is None else self._chain[search.culprit].ticket
        by_agents = search.culprit is None or culprit is not None
        result = BatchResult(changes=changes, green=search.red is None, agents_only=bool(changes) and by_agents)
        if not blame or search.culprit is None:
            return result
        against = tried[search.convicted_by].tested
        if culprit is None:
            self._refuse_red_upstream(against)
            return result
        return replace(result, blamed=Blame(ticket=culprit, against=against, alone=search.lands is None))

    def _build(self, tickets: Sequence[Ticket], with_upstream: bool) -> list[ChainLink]:
        """Each change on top of the one before. A change that conflicts with the target goes back to its agent; one
        that conflicts only with another of the batch waits for the next batch, when it is known which of them landed.
        """
        first = self._upstream_link() if with_upstream else None
        chain = [first] if first is not None else []
        for ticket in tickets:
            tip = chain[-1].commit if chain else self._start
            merged = candidate(self._context, self._project, tip, ticket, by_definition=tip == self._start)
            if isinstance(merged, MergeCandidate) and merged.definitions and not self._is_proven(ticket, merged):
                send_back(self._context, ticket, Recheck("merged by definition with what landed meanwhile"))
                continue
            if isinstance(merged, MergeCandidate):
                chain.append(ChainLink(ticket=ticket, commit=merged.commit, tree=merged.tree))
                continue
            on_target = merged
            if tip != self._start:
                alone = candidate(self._context, self._project, self._start, ticket, by_definition=True)
                if not isinstance(alone, MergeConflict):
                    continue
                on_target = alone
            there = may_be_there(self._context, self._project, ticket)
            back = (
                Recheck()
                if there
                else sent_back_for_conflict(self._context, self._project, ticket, self._start, on_target)
            )
            send_back(self._context, ticket, back)
        return chain

    def _is_proven(self, ticket: Ticket, merged: MergeCandidate) -> bool:
        """Whether the ticket's own proofs are green on exactly this tree."""
        with self._context.store.read() as tx:
            known = receipts.for_tree(tx, self._project.id, merged.tree)
        return {one.command for one in known if one.verdict is CheckResult.GREEN}.issuperset(ticket.spec.proofs)

    def _upstream_link(self) -> ChainLink | None:
        """The person's commits on the target; None where they conflict with it and are refused."""
        project, hub = self._project, self._project.hub
        tip = project.record.person_tip
        assert tip is not None, "commits that wait have a tip"
        if self._start == project.record.person_absorbed:
            # The target has nothing but the person's own commits, so they may rewrite them as they like.
            return ChainLink(ticket=None, commit=tip, tree=hub.tree_of(tip))
        message = f"Merge {project.record.branch}"
        when = int(self._context.clock())
        merged = candidates.merge_person(hub, self._start, tip, message=message, author=AUTHOR, when=when)
        if isinstance(merged, MergeCandidate):
            return ChainLink(ticket=None, commit=merged.commit, tree=merged.tree)
        if isinstance(merged, MergeConflict):
            named = ", ".join(file.path for file in merged.files[:3])
            remedy = f"run `git fetch {hub.path} {TARGET}` and `git merge FETCH_HEAD`, resolve the conflict and commit"
            why = f"your commits conflict with landed changes in {named}"
            refuse_upstream(self._context, project, why, remedy)
        if merged is None:
            settle_upstream(self._context, project, tip)
        return None

    def _refuse_unreadable_settings(self) -> bool:
        """Refuse the first link with a legion.toml that cannot be parsed. Each link is checked, not only the tip: any
        prefix of the chain may land, and an unreadable file in the target would stop the project."""
        parents = [self._start, *(link.commit for link in self._chain)]
        steps = [(parent, link.commit) for parent, link in zip(parents, self._chain, strict=False)]
        changing = self._project.hub.commits_changing(FILE, steps)
        for link in self._chain:
            wrong = self._unreadable(link.commit) if link.commit in changing else None
            if wrong is None:
                continue
            if link.ticket is None:
                why = f"your {FILE} cannot be read ({wrong.rstrip('.')})"
                refuse_upstream(self._context, self._project, why, _FIX)
            else:
                step = next_try(link.ticket, f"its {FILE} cannot be read", feedback.unreadable_settings(wrong))
                send_back(self._context, link.ticket, step)
            return True
        return False

    def _stop_for_repositories(self) -> bool:
        """Two changes can be harmless alone and hold a repository together, so each link is looked at as it would
        land."""
        for link in self._chain:
            if link.ticket is None:
                continue
            about = approvals.assembled_by_merge(self._project, link.ticket, link.commit)
            if about is not None and stop_for_approval(self._context, link.ticket, about):
                return True
        return False

    def _unreadable(self, commit: str) -> str | None:
        text = self._project.hub.read_file(commit, FILE)
        try:
            parse("" if text is None else text.decode("utf-8", "replace"))
        except BadInput as wrong:
            return wrong.message
        return None

    def _with_upstream_settings(self) -> ProjectContext:
        """The person's commits are tested by the legion.toml that they bring, if it is trusted: otherwise a broken
        check could never be fixed. A change of an agent is always tested by the target's.
        """
        project, first = self._project, self._chain[0]
        file = project.hub.read_file(first.commit, FILE) if first.ticket is None else None
        if file is None:
            return project
        text = file.decode("utf-8", "replace")
        with self._context.store.read() as tx:
            trusted = projects.is_trusted(tx, project.id, hash_of(text))
        return replace(project, config=parse(text)) if trusted else project

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        """The board shows that these tickets are being tested."""
        notes, mine = (
            self._context.live.queue.notes,
            [link.ticket.id for link in self._chain if link.ticket is not None],
        )
        many = len(self._chain)
        notes.update(dict.fromkeys(mine, "in test" if many == 1 else f"in test, {many} changes together"))
        try:
            yield
        finally:
            notes.remove(mine)
            self._context.live.queue.suspected.remove([self._project.id])

    def _search(
        self, speculation: Speculation, early: CheckedCommit | None
    ) -> tuple[BisectState, dict[BisectProbe, _CheckedChain]]:
        """Test parts of the chain until it is known how much of it may land and which change is to blame.

        `early` is the result for the complete chain from the time when it was tested on a batch that has landed since.
        """
        search = BisectState(size=len(self._chain))
        tried: dict[BisectProbe, _CheckedChain] = {}
        slots = self._project.config.landing.checks_at_once
        # The batch below may have brought other checks; then the early result is void.
        if early is not None and not early.green and early.wanted == self._wanted(self._chain):
            speculation.give_up()
            complete = BisectProbe(len(self._chain))
            tried[complete] = _CheckedChain(links=tuple(self._chain), tested=early)
            search = queue.with_results(search, {complete: False})
        while not search.settled:
            probes = queue.probes(search, slots)
            results = dict(zip(probes, call_each(self._try, probes, thread_name="probe"), strict=True))
            tested = {probe: result for probe, result in results.items() if result is not None}
            for result in tested.values():
                refuse_broken(result.tested)
            tried |= tested
            green = {probe: None if result is None else result.tested.green for probe, result in results.items()}
            search = queue.with_results(search, green)
            if search.red is not None:
                speculation.give_up()
                self._show_suspects(search)
        return search, tried

    def _show_suspects(self, search: BisectState) -> None:
        between = self._chain[search.green : search.red]
        suspected = tuple(link.ticket.id for link in between if link.ticket is not None)
        self._context.live.queue.suspected.update({self._project.id: suspected})

    def _try(self, probe: BisectProbe) -> _CheckedChain | None:
        """The project's checks and every ticket's proofs on the tip of the part that the probe names."""
        links = part(self._context, self._project, self._start, self._chain, probe)
        if links is None:
            return None
        crash.reach(Point.LAND_BEFORE_TEST)
        wanted, complete = self._wanted(links), probe == BisectProbe(len(self._chain))
        with of_chain(self._context, self._project, links, wanted, complete=complete):
            tested = execution.test_unless_cancelled(
                self._context, self._project, links[-1].commit, wanted, self._cancel
            )
        return _CheckedChain(links=links, tested=tested)

    def _wanted(self, links: Sequence[ChainLink]) -> tuple[WantedCheck, ...]:
        tickets = [link.ticket for link in links if link.ticket is not None]
        return of_batch(self._context, self._project, tickets, self._start, links[-1].commit)

    def _refuse_red_upstream(self, against: CheckedCommit) -> None:
        """At once, by the settings of this batch: the person's commits never wait as a suspect."""
        tested = confirmed(self._context, self._project, against)
        if not tested.green:
            why = f"your commits fail {failed_commands(tested.red)}"
            refuse_upstream(self._context, self._project, why, _FIX, because=tested.red)


# Offers a proven change to the project's forge instead of moving the target: its ticket waits there.
#
# The target follows when the forge has merged the change (`jobs/forge`).

WAITS = "its change passed all checks and waits to be merged at the forge: see `legion status pr {}`"

NO_PULLS = (
    'its change passed all checks, but `landing.target` is "pr" and no forge with pull requests is there: run `legion '
    "forge add github OWNER/REPO`, or set another target and run `legion resume {}`"
)


def offer(context: Board, project: ProjectContext, start: str, chain: Sequence[ChainLink]) -> bool:
    """False where a person moved one of the tickets meanwhile."""
    links = [(link, link.ticket) for link in chain if link.ticket is not None]
    for link, ticket in links:
        project.hub.keep(f"offered/{ticket.id}", link.commit)
    with context.store.write() as tx:
        if any(tickets.get(tx, ticket.id).version != ticket.version for _, ticket in links):
            return False
        forge = forges.of_project(tx, project.id)
        waits = WAITS if forge is not None and forge.kind is ForgeKind.GITHUB else NO_PULLS
        for link, ticket in links:
            claim = forges.claim_of_ticket(tx, ticket.id)
            offered = TicketPull(
                ticket=ticket.id,
                project=project.id,
                stage=PullStage.OFFERED,
                branch=claim.branch if claim is not None else ticket_branch(ticket.id),
                base=start,
                tested=link.commit,
            )
            forges.offer(tx, offered)
            tickets.move(tx, ticket.id, Park(ParkReason.OUTSIDE, waits.format(ticket.id)))
    crash.reach(Point.FORGE_AFTER_OFFER)
    return True
