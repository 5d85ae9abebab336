# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about races; `operations` explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import OpenTo, Table, TicketId, operation

if TYPE_CHECKING:
    from legion import wire


class RaceOperations(Table):
    """A race spends the person's money, so it is the person's alone."""

    @operation("POST", "/v1/tickets/{id}/race", open_to=OpenTo.BROWSER, created=True)
    def race(self, id: TicketId, wanted: wire.races.NewRace, /) -> wire.races.RacePage:
        """Start several attempts of a ticket at once; the best proven one lands"""

    @operation("GET", "/v1/tickets/{id}/race", open_to=OpenTo.LOOKS)
    def race_page(self, id: TicketId, /) -> wire.races.RacePage:
        """The race of a ticket: its lanes, their cost, and which of them won"""
