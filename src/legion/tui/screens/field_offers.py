"""Lists what a field of a form can hold, as the daemon knows it: branches, drivers, models, teams, roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from legion.client.legion import Legion
from legion.client.text.rows import clean

Offer = Callable[[Legion, str], list[tuple[str, str]]]
"""Reads the choices for a folder, as (value, text). Called in a thread of the requests."""


def _branches(legion: Legion, cwd: str) -> list[tuple[str, str]]:
    return [(name, clean(name)) for name in legion.branches(cwd).branches]


def _drivers(legion: Legion, cwd: str) -> list[tuple[str, str]]:
    return [(one.name, clean(f"{one.name}  {one.title}")) for one in legion.drivers().drivers if not one.fault]


def _models(legion: Legion, cwd: str) -> list[tuple[str, str]]:
    return [(model, clean(f"{model}  {one.provider}")) for one in legion.models().providers for model in one.models]


def _teams(legion: Legion, cwd: str) -> list[tuple[str, str]]:
    return [(one.name, clean(f"{one.name}  {one.about}")) for one in legion.teams(cwd).teams]


def _roles(legion: Legion, cwd: str) -> list[tuple[str, str]]:
    return [(one.name, clean(f"{one.name}  {one.about}")) for one in legion.roles(cwd).roles]


OFFERS: Mapping[str, Offer] = {
    "branch": _branches,
    "base": _branches,
    "driver": _drivers,
    "profile": _drivers,
    "model": _models,
    "team": _teams,
    "role": _roles,
}
"""By the name of the field."""
