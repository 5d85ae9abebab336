"""Which provider and model answers for each agent: a table that is changed in place, and the routes behind it."""

from __future__ import annotations

from collections.abc import Callable

from legion.client.legion import Legion
from legion.client.text import models
from legion.client.text.rows import Row, clean
from legion.tui.feed import Feed
from legion.tui.screens.catalog import CatalogPlace
from legion.tui.screens.forms import Form
from legion.tui.screens.prompts import Picker
from legion.tui.store import of_kinds
from legion.tui.views.form_fields import ROUTE_FIELDS
from legion.tui.widgets.row_list import RowList
from legion.wire.providers import Models, RemoveRoute, RouteLine, SetRoute
from legion.wire.ticket_fields import request_of

_NEVER = of_kinds("-")


class ModelsPlace(CatalogPlace):
    def __init__(self) -> None:
        super().__init__("models")
        self._models: Feed[Models] | None = None
        self._picker: Picker | None = None
        self._has_route = False

    def on_unmount(self) -> None:
        # Textual calls that of the other class, too.
        self.store.drop([self._models] if self._models is not None else [])

    def watches(self) -> list[Callable[[], None]]:
        if self._models is None:
            self._models = self.store.feed(lambda legion: legion.models(), _NEVER)
        return [*super().watches(), self._models.watch(self.renew)]

    def fetch(self, legion: Legion) -> models.ModelTable:
        cwd = self.store.cwd
        return models.ModelTable(
            routes=legion.routes(), roles=legion.roles(cwd), agents=legion.agents(), providers=legion.providers()
        )

    def rows_of(self, value: object, width: int) -> list[Row]:
        assert isinstance(value, models.ModelTable)
        return models.rows(value, self._offered, width)

    @property
    def _offered(self) -> Models | None:
        return self._models.value if self._models is not None else None

    @property
    def _table(self) -> models.ModelTable | None:
        found = self.value
        return found if isinstance(found, models.ModelTable) else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "add":
            return True
        if action == "remove":
            return self._table is not None and models.route_of(self._table, self._selected) is not None
        return False if action == "test" else super().check_action(action, parameters)

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        table = self._table
        user = models.user_of(table, event.key) if table is not None else None
        if table is None or user is None:
            return
        present = models.route_of(table, event.key)

        def chosen(target: str | None) -> None:
            if target == models.AS_BEFORE and present is not None:
                removal = _removal(present)
                self.legion_app.send(lambda legion: legion.remove_route(removal).message, self._again)
            elif target and target != models.AS_BEFORE:
                wanted = SetRoute(model=models.ANY, to=[target], agent=user.agent, role=user.role)
                self.legion_app.act("set_route", "", wanted, then=self._again)

        self._has_route = present is not None
        self._picker = Picker(f"Who answers for {clean(user.name)}", self._targets(table), user.target)
        self.app.push_screen(self._picker, chosen)

    def _targets(self, table: models.ModelTable) -> list[tuple[str, str]]:
        return models.targets(table, self._offered, has_route=self._has_route)

    def renew(self) -> None:
        super().renew()
        table = self._table
        if table is not None and self._picker is not None:
            # The models of the providers may arrive while the list is open.
            self._picker.offer(self._targets(table))

    def action_add(self) -> None:
        self.app.push_screen(Form("Set a route", "route", ROUTE_FIELDS, _set_route))

    def action_remove(self) -> None:
        table = self._table
        route = models.route_of(table, self._selected) if table is not None else None
        if route is not None:
            what = f"{clean(route.model)} to {clean(', '.join(route.to))}"
            self.legion_app.act("remove_route", what, _removal(route), then=self._again)


def _removal(one: RouteLine) -> RemoveRoute:
    return RemoveRoute(model=one.model, provider=one.provider, agent=one.agent, role=one.role, team=one.team)


def _set_route(given: dict[str, object]) -> Callable[[Legion], str]:
    if not given.get("model") or not given.get("to"):
        raise ValueError("Write the model, and where it is asked for.")
    wanted = request_of(SetRoute, given, "")
    return lambda legion: legion.set_route(wanted).message
