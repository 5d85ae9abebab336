"""The catalog of conversations: lists and searches them, finds one to read or to ask, and reports on all of them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from legion.conversations import alive
from legion.conversations.conversation import ConversationFacts, ConversationProgram, plain
from legion.conversations.index import Hit, Index, Indexed, IndexProgress, expression
from legion.conversations.places import ConversationPlaces
from legion.conversations.refresh import Refresher
from legion.domain.errors import BadInput, NotFound
from legion.domain.runs import Run, seated
from legion.gateway.accounting.prices import PriceList
from legion.gateway.counting.counters import TokenCounts
from legion.jobs.board import Board
from legion.store.board import projects, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.work import runs, usage
from legion.system.paths import user_config_file
from legion.wire.conversations import (
    Analytics,
    ConversationHealth,
    ConversationLine,
    Conversations,
    ConversationSums,
    IndexState,
    SearchHit,
    SearchResult,
)

MOST_HITS = 200
LAST_WAIT = 10.0
"""Seconds that an export waits for the newest conversation to be read."""
_QUICK = 2.0
"""Seconds: a search that may take no longer does not wait for a look at very many files."""
_TICKET = re.compile(r"#?(\d{1,15})")
_START, _END = "\x02", "\x03"
"""Around a word that was found."""


class Catalog:
    """Holds the index and the process that reads into it."""

    def __init__(self, context: Board) -> None:
        self._context = context
        self._refresher = Refresher(context.data.root, self.places)
        self._prices = PriceList(user_config_file().with_name("prices.toml"))

    def places(self) -> ConversationPlaces:
        return ConversationPlaces.of_person(os.environ, self._context.data.runs)

    def close(self) -> None:
        self._refresher.close()

    @contextlib.contextmanager
    def index(self, wait: float, *, hurry: bool = False) -> Iterator[tuple[Index, IndexState]]:
        """The index as it is after waiting at most so long for it."""
        state = self._state(self._refresher.refresh(wait, hurry=hurry))
        with contextlib.closing(Index(self._refresher.index)) as index:
            yield index, state

    def listed(self, hours: float = 168.0, timeout: float = 0.0) -> Conversations:
        with self.index(timeout) as (index, state):
            found = index.conversations(self._since(hours))
        return Conversations(conversations=self.lines(found), index=state)

    def search(self, query: str, hours: float = 100_000.0, most: int = 20, timeout: float = 0.0) -> SearchResult:
        wanted = expression(query)
        if not wanted:
            raise BadInput(
                "Nothing to search for: write at least one word, like `legion conversations search 'login form'`."
            )
        with self.index(timeout, hurry=timeout <= _QUICK) as (index, state):
            hits = index.search(wanted, since=self._since(hours), most=min(most or MOST_HITS, MOST_HITS))
        lines = self.lines([hit.conversation for hit in hits])
        found = [_hit(hit, line) for hit, line in zip(hits, lines, strict=True)]
        return SearchResult(query=query, hits=found, index=state)

    def one(self, id: str) -> Indexed:
        """The conversation with this id or the start of one; the newest where it is empty, and of a ticket where it is
        a ticket's number. Raises NotFound.
        """
        with self.index(LAST_WAIT) as (index, _):
            number = _TICKET.fullmatch(id)
            found = index.named(f"ticket-{number[1]}-")[:1] if number is not None else []
            found = found or (index.named(id) if id else index.conversations()[:1])
        if not found:
            what = f"no conversation {id[:80]!r}" if id else "no conversation yet"
            raise NotFound(f"There is {what}; `legion conversations` lists them.")
        if len({one.facts.id for one in found}) > 1:
            raise BadInput(f"Several conversations start with {id[:80]!r}: write more of the id.")
        return found[0]

    def lines(self, found: Iterable[Indexed]) -> list[ConversationLine]:
        every = list(found)
        live = alive.alive(every, self.places().claude)
        lines = [self._line(one, one.path in live) for one in every]
        self._of_runs({line.id: line for line in lines if line.program == ConversationProgram.LEGION.value})
        return lines

    def cost(self, facts: ConversationFacts) -> float | None:
        """As the program reports it, or by our prices, whichever is more: a killed program reports too little."""
        known = self._prices.current()
        parts = [known.cost(model, TokenCounts(**vars(sums))) for model, sums in facts.tokens.items()]
        priced = None if None in parts else sum(part or 0.0 for part in parts)
        return max(priced, facts.usd) if priced is not None else facts.usd or None

    def _line(self, one: Indexed, is_alive: bool) -> ConversationLine:
        facts = one.facts
        title = facts.title or facts.first_prompt
        return ConversationLine(
            id=facts.id,
            program=facts.program.value,
            project=facts.folder,
            branch=facts.branch,
            title=plain(title),
            last_prompt=plain(facts.last_prompt),
            last_answer=plain(facts.last_answer),
            messages=facts.messages,
            started_at=facts.started_at,
            modified_at=facts.ended_at or one.mtime / 1e9,
            model=facts.model,
            usd=self.cost(facts),
            tokens=sum(sum(vars(sums).values()) for sums in facts.tokens.values()),
            bytes=one.size,
            alive=is_alive,
            broken=facts.broken,
            path=one.path,
        )

    def _of_runs(self, lines: Mapping[str, ConversationLine]) -> None:
        """Lines of Legion's runs, by their names: add what the board knows about each."""
        with self._context.store.read() as tx:
            known = {name: run for name in lines if (run := _run(tx, name)) is not None}
            ids = [run.id for run in known.values()]
            spent, models = usage.of_runs(tx, ids), usage.models_of(tx, ids)
            numbers = {run.ticket for run in known.values() if run.ticket is not None}
            on_board = tickets.states_of(tx, numbers)
            titles = {ticket.id: ticket.spec.title for ticket in tickets.get_many(tx, on_board)}
            roots = {project.id: project.root for project in projects.all(tx)}
        for name, run in known.items():
            line = lines[name]
            line.ticket = run.ticket
            line.title = titles.get(run.ticket, run.seat) if run.ticket is not None else run.seat
            line.alive = run.ended_at is None
            line.model = models.get(run.id, line.model)
            line.project = roots.get(run.project, "")
            if (one := spent.get(run.id)) is not None:
                line.usd = one.known_usd
                line.tokens = one.input + one.output + one.cache_read + one.cache_write

    def _since(self, hours: float) -> float:
        return max(0.0, self._context.clock() - hours * 3600)

    def _state(self, progress: IndexProgress) -> IndexState:
        return IndexState(
            files=progress.files,
            bytes=progress.bytes,
            bytes_done=progress.bytes_done,
            reading=self._refresher.reading,
            complete=progress.finished_at > 0,
        )


def _run(tx: ReadTransaction, name: str) -> Run | None:
    """The run of this name; None where it is none of a ticket, agent or plan, or no longer known."""
    seat, _, number = name.rpartition("-run-")
    if seated(seat) is None or not number.isdigit():
        return None
    with contextlib.suppress(NotFound):
        return runs.get(tx, int(number))
    return None


def is_orphaned(facts: ConversationFacts) -> bool:
    """Whether the folder in which the program worked is gone."""
    return bool(facts.folder) and not Path(facts.folder).is_dir()


def _hit(hit: Hit, line: ConversationLine) -> SearchHit:
    text, found = "", []
    for position, part in enumerate(hit.excerpt.split(_START)):
        word, _, rest = part.partition(_END) if position else ("", "", part)
        shown = " ".join(plain(word).split())
        if shown:
            found.append([len(text), len(text) + len(shown)])
        text += shown + _one_line(rest)
    return SearchHit(conversation=line, role=hit.role.value, at=hit.at, excerpt=text, found=found)


def _one_line(text: str) -> str:
    """With one space where there was any, also at both ends."""
    shown = " ".join(plain(text).split())
    before = " " if text[:1].isspace() and shown else ""
    after = " " if text[-1:].isspace() else ""
    return f"{before}{shown}{after}"


STALE_HOURS = 48.0
LARGE_MESSAGES = 1000
_MOST_LISTED = 100
_TOP = 10


def analytics(catalog: Catalog, now: float, hours: float, timeout: float) -> Analytics:
    with catalog.index(timeout) as (index, state):
        found = index.conversations(max(0.0, now - hours * 3600), with_parts=True)
    lines = catalog.lines(found)
    return Analytics(
        hours=hours,
        total=_sums("", lines),
        by_program=_by(lines, lambda line: line.program),
        by_project=_by(lines, lambda line: line.project),
        by_model=_by(lines, lambda line: line.model),
        by_day=sorted(_by(lines, _day), key=lambda sums: sums.key),
        index=state,
    )


def health(catalog: Catalog, now: float, hours: float, timeout: float) -> ConversationHealth:
    with catalog.index(timeout) as (index, state):
        every = index.conversations(max(0.0, now - hours * 3600))
        size = index.path.stat().st_size
    by_age = sorted(every, key=_end)
    groups: dict[str, list[Indexed]] = {
        "stale": [one for one in by_age if now - _end(one) > STALE_HOURS * 3600],
        "large": [one for one in every if one.facts.messages > LARGE_MESSAGES],
        "orphaned": [one for one in every if is_orphaned(one.facts)],
        "broken": [one for one in every if one.facts.broken],
    }
    largest = sorted(every, key=lambda one: one.size, reverse=True)

    def shown(some: Sequence[Indexed], most: int = _MOST_LISTED) -> list[ConversationLine]:
        return catalog.lines(some[:most])

    return ConversationHealth(
        hours=hours,
        conversations=len(every),
        bytes=sum(one.size for one in every),
        index_bytes=size,
        oldest=shown(by_age, _TOP),
        largest=shown(largest, _TOP),
        counts={name: len(group) for name, group in groups.items()},
        index=state,
        stale=shown(groups["stale"]),
        large=shown(groups["large"]),
        orphaned=shown(groups["orphaned"]),
        broken=shown(groups["broken"]),
    )


def _end(one: Indexed) -> float:
    return one.facts.ended_at or one.mtime / 1e9


def _day(line: ConversationLine) -> str:
    return f"{datetime.fromtimestamp(line.modified_at, UTC):%Y-%m-%d}"


def _by(lines: Iterable[ConversationLine], key: Callable[[ConversationLine], str]) -> list[ConversationSums]:
    groups: dict[str, list[ConversationLine]] = {}
    for line in lines:
        groups.setdefault(key(line), []).append(line)
    return sorted((_sums(name, group) for name, group in groups.items()), key=lambda sums: (-sums.usd, -sums.tokens))


def _sums(key: str, lines: Sequence[ConversationLine]) -> ConversationSums:
    return ConversationSums(
        key=key,
        conversations=len(lines),
        messages=sum(line.messages for line in lines),
        tokens=sum(line.tokens for line in lines),
        usd=sum(line.usd or 0.0 for line in lines),
        unpriced=sum(1 for line in lines if line.usd is None),
    )
