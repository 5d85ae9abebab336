"""Finds the screen of a list of the menu by its name."""

from __future__ import annotations

from legion.tui.screens.catalog import CatalogPlace
from legion.tui.screens.machines import MachinesPlace
from legion.tui.screens.models import ModelsPlace


def list_place(name: str) -> CatalogPlace:
    if name == "models":
        return ModelsPlace()
    return MachinesPlace() if name == "machines" else CatalogPlace(name)
