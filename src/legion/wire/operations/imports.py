# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about work from other tools; `operations` explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import OpenTo, Table, operation

if TYPE_CHECKING:
    from legion import wire


class ImportOperations(Table):
    @operation("POST", "/v1/import", open_to=OpenTo.BROWSER, waits=True)
    def import_tickets(self, wanted: wire.imports.ImportTickets, /) -> wire.imports.Imported:
        """Create tickets for work of another tool, each of them once"""
