"""Figures as they are measured, and at the end a table of those that have an aim."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ROUNDS = 5


@dataclass(frozen=True, kw_only=True)
class Figure:
    name: str
    shown: str
    aim: str
    met: bool | None


class Report:
    def __init__(self) -> None:
        self._figures: list[Figure] = []

    def part(self, name: str) -> None:
        say(f"\n== {name} ==")

    def ratio(
        self, name: str, ours: Sequence[float], plain: Sequence[float], *, aim: float, extra: float = 0.0
    ) -> None:
        """Our median against the plain way's; `extra` seconds may be added to the plain way first."""
        mine, theirs = statistics.median(ours), statistics.median(plain)
        allowed = theirs * aim + extra
        figure = f"{mine / theirs:5.2f}x  ({_ms(mine)} against {_ms(theirs)}; all {_all(ours)} against {_all(plain)})"
        added = f" + {extra:g} s" if extra else ""
        self._add(name, figure, f"at most {aim:g}x{added}", mine <= allowed)

    def value(self, name: str, value: float, unit: str, *, aim: float | None = None) -> None:
        self._add(name, f"{value:8.2f} {unit}", f"at most {aim:g} {unit}" if aim is not None else "", _met(value, aim))

    def summary(self) -> None:
        missed = [figure for figure in self._figures if figure.met is False]
        aimed = [figure for figure in self._figures if figure.met is not None]
        say(f"\n{len(aimed) - len(missed)} of {len(aimed)} aims met.")
        for figure in aimed:
            short = figure.shown.split("(")[0].strip()
            say(f"{'ok  ' if figure.met else 'MISS'} {figure.name:<68} {short:>16}   aim {figure.aim}")

    def _add(self, name: str, shown: str, aim: str, met: bool | None) -> None:
        self._figures.append(Figure(name=name, shown=shown, aim=aim, met=met))
        mark = {True: "ok  ", False: "MISS", None: "    "}[met]
        say(f"{mark} {name:<52} {shown}{f'   aim {aim}' if aim else ''}")


def interleaved(ours: Callable[[int], float], plain: Callable[[int], float]) -> tuple[list[float], list[float]]:
    """Both ways in turn, so that a busy moment of the machine hits both."""
    pairs = [(ours(number), plain(number)) for number in range(ROUNDS)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _met(value: float, aim: float | None) -> bool | None:
    return None if aim is None else value <= aim


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _all(values: Sequence[float]) -> str:
    return "/".join(f"{value * 1000:.0f}" for value in values)
