# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about machines; `operations` explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import Count, MachineName, OpenTo, Table, operation

if TYPE_CHECKING:
    from legion import wire


class MachineOperations(Table):
    """They are the person's alone: a machine runs programs in the person's name."""

    @operation("GET", "/v1/machines", open_to=OpenTo.LOOKS)
    def machines(self) -> wire.machine_pages.MachineList:
        """The head and its machines, and what each is doing"""

    @operation("GET", "/v1/machines/{name}/log", open_to=OpenTo.LOOKS)
    def machine_log(self, name: MachineName, /, limit: Count = 50) -> wire.machine_pages.MachineLog:
        """The runs that a machine was given, and what became of each"""

    @operation("POST", "/v1/machines/{name}/pause", open_to=OpenTo.ACTS)
    def pause_machine(self, name: MachineName, /) -> wire.projects.Done:
        """Start nothing new on a machine"""

    @operation("POST", "/v1/machines/{name}/resume", open_to=OpenTo.ACTS)
    def resume_machine(self, name: MachineName, /) -> wire.projects.Done:
        """Give a paused or draining machine work again"""

    @operation("POST", "/v1/machines/{name}/drain", open_to=OpenTo.ACTS)
    def drain_machine(self, name: MachineName, /) -> wire.projects.Done:
        """Start nothing new on a machine that is to be removed or updated"""

    @operation("POST", "/v1/machines/{name}/remove", open_to=OpenTo.BROWSER)
    def remove_machine(self, name: MachineName, wanted: wire.machine_pages.RemoveMachine, /) -> wire.projects.Done:
        """Remove a machine: its token opens nothing from now on"""

    @operation("POST", "/v1/machines/{name}/update", open_to=OpenTo.BROWSER)
    def update_machine(self, name: MachineName, /) -> wire.projects.Done:
        """Have a machine's worker start again as the release that is installed there; its runs continue"""
