"""The machines that work for this Legion: restart or update, pause, remove one; clean up."""

from __future__ import annotations

from legion.client.legion import Legion
from legion.client.text.machines import log_rows, rows
from legion.client.text.rows import Row, clean
from legion.tui.keys import KeyContext
from legion.tui.screens.catalog import CatalogPlace
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.row_list import RowList
from legion.wire.machines import MachineLine, MachineList, RemoveMachine

_OPERATIONS = {
    "update": {"update_machine"},
    "pause_machine": {"pause_machine", "resume_machine"},
    "drain_machine": {"drain_machine"},
    "remove_machine": {"remove_machine"},
}
"""By action of the key map: the operations of which one must be offered."""


class MachinesPlace(CatalogPlace, inherit_bindings=False):
    CONTEXTS = (KeyContext.MACHINES, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.MACHINES)

    def __init__(self) -> None:
        super().__init__("machines")

    def on_mount(self) -> None:
        # A machine that falls silent is no event.
        self.set_interval(5.0, self._again)

    def fetch(self, legion: Legion) -> MachineList:
        return legion.machines()

    def rows_of(self, value: object, width: int) -> list[Row]:
        assert isinstance(value, MachineList)
        return rows(value, width)

    @property
    def machine(self) -> MachineLine | None:
        found = self.value
        lines = found.machines if isinstance(found, MachineList) else []
        return next((one for one in lines if one.name == self._selected), None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in _OPERATIONS:
            return self.machine is not None and bool(_OPERATIONS[action] & {*self.machine.offers})
        return True if action == "clean" else super().check_action(action, parameters)

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        machine = self.machine
        if machine is not None and not machine.head:
            self.run_worker(self._show_log(machine.name), exclusive=True)

    async def _show_log(self, name: str) -> None:
        await self.show_answer(
            f"Runs of {clean(name)}",
            lambda legion: legion.machine_log(name),
            lambda found, width: log_rows(found, width),
        )

    def action_update(self) -> None:
        self._act("update_machine")

    def action_pause_machine(self) -> None:
        held = self.machine is not None and self.machine.state in ("paused", "draining")
        self._act("resume_machine" if held else "pause_machine")

    def action_drain_machine(self) -> None:
        self._act("drain_machine")

    def action_remove_machine(self) -> None:
        self._act("remove_machine", RemoveMachine())

    def _act(self, operation: str, *given: object) -> None:
        if self.machine is not None:
            name = self.machine.name
            self.legion_app.act(operation, clean(name), name, *given, then=self._again)

    def action_clean(self) -> None:
        self.legion_app.clear_ended()
