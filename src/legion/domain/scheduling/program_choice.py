"""Which program and model a new ticket gets, learned from the ended tickets of its project. Pure.

Only what was tried decides: a program or model is considered for a kind of ticket once enough tickets of that kind
ended with it. A kind is a label, else a top folder of the declared files, else any ticket. The choice is explained, and
it counts only for tickets that name neither program nor model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

LEAST = 3
"""Ended tickets of a kind that a program and model need before they are considered."""
_SAME_SHARE = 0.1
"""Shares of landed tickets that differ by less count as equal; then the cost decides."""


@dataclass(frozen=True, kw_only=True)
class PastTicket:
    """A ticket that landed or failed, by one program and model."""

    driver: str
    model: str
    labels: tuple[str, ...]
    files: tuple[str, ...]
    landed: bool
    attempts: int
    usd: float


@dataclass(frozen=True, kw_only=True)
class ProgramChoice:
    driver: str
    model: str
    why: str

    def __str__(self) -> str:
        return f"{self.driver} {self.model}".strip() + f": {self.why}"


@dataclass(frozen=True, kw_only=True)
class _TrackRecord:
    """What one program and model did with tickets of a kind."""

    driver: str
    model: str
    tickets: tuple[PastTicket, ...]

    @property
    def landed(self) -> int:
        return sum(one.landed for one in self.tickets)

    @property
    def share(self) -> float:
        """Landed of all; few tickets say less than many."""
        return (self.landed + 1) / (len(self.tickets) + 2)

    @property
    def usd(self) -> float:
        """Dollars for each that landed, with what the others cost."""
        return sum(one.usd for one in self.tickets) / max(self.landed, 1)

    @property
    def attempts(self) -> float:
        return sum(one.attempts for one in self.tickets) / max(self.landed, 1)

    def __str__(self) -> str:
        name = f"{self.driver} {self.model}".strip()
        cost = f" at ${self.usd:.2f} each" if self.usd else ""
        return f"{name} landed {self.landed} of {len(self.tickets)} in {self.attempts:.1f} attempts{cost}"


def best_program(
    labels: Collection[str], files: Collection[str], past: Sequence[PastTicket], usable: Collection[str]
) -> ProgramChoice | None:
    """None where fewer than two programs or models have a record: there is nothing to choose between.

    `usable`: the programs that can start.
    """
    for kind, mine in _kinds(labels, files, past):
        records = [one for one in _records(mine) if one.driver in usable and len(one.tickets) >= LEAST]
        if len(records) < 2:
            continue
        top = max(one.share for one in records)
        near = [one for one in records if one.share > top - _SAME_SHARE]
        best = min(near, key=lambda one: (one.usd, one.attempts, one.driver, one.model))
        others = "; ".join(str(one) for one in records if one is not best)
        return ProgramChoice(driver=best.driver, model=best.model, why=f"of {kind}, {best}; {others}")
    return None


def _kinds(
    labels: Collection[str], files: Collection[str], past: Sequence[PastTicket]
) -> Iterator[tuple[str, list[PastTicket]]]:
    """The most exact kind first."""
    for label in sorted(labels):
        yield f"tickets with the label {label}", [one for one in past if label in one.labels]
    for folder in sorted({_top(file) for file in files}):
        yield f"tickets in {folder}", [one for one in past if folder in map(_top, one.files)]
    yield "all tickets", list(past)


def _records(past: Sequence[PastTicket]) -> list[_TrackRecord]:
    found: dict[tuple[str, str], list[PastTicket]] = {}
    for one in past:
        found.setdefault((one.driver, one.model), []).append(one)
    return [_TrackRecord(driver=key[0], model=key[1], tickets=tuple(mine)) for key, mine in sorted(found.items())]


def _top(path: str) -> str:
    return path.split("/", 1)[0]
