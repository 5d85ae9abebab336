"""Plans: those that wait for the person first; approve all or some tickets, send back, edit, try again, drop."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable

from legion.client.legion import Legion
from legion.client.text import plans
from legion.client.text.rows import Row, clean
from legion.client.text.terminal import count
from legion.tui.attachment import edited
from legion.tui.feed import Feed
from legion.tui.keys import KeyContext
from legion.tui.screens.forms import Form
from legion.tui.screens.host import UiHost
from legion.tui.screens.list_and_page import ListAndPage
from legion.tui.store import of_kinds
from legion.tui.views.form_fields import PLAN_FIELDS
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.row_list import RowList
from legion.wire.errors import LegionError
from legion.wire.plans import ApprovePlan, NewPlan, PlanLine, PlanPage, SavePlan
from legion.wire.ticket_fields import request_of


def plan_form(app: UiHost) -> Form:
    def request(given: dict[str, object]) -> Callable[[Legion], str]:
        if not given.get("goal"):
            raise ValueError("Write the goal: what should be there in the end.")
        wanted = request_of(NewPlan, given, app.store.project_root or app.store.cwd)
        return lambda legion: f"{legion.plan(wanted).plan.id} is being planned; it asks for you when it is ready."

    return Form("Plan a goal", "plan", PLAN_FIELDS, request)


class PlansPlace(ListAndPage[PlanPage]):
    NAME = "plans"
    SHOWS_NEXT = False
    CONTEXTS = (KeyContext.PLANS, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.PLANS)

    def __init__(self) -> None:
        super().__init__()
        self._chosen: set[str] = set()
        """Keys of the tickets of the shown plan that the person marked."""

    def watches(self) -> Iterable[Callable[[], None]]:
        yield self.store.plans.watch(self.renew)

    @property
    def plan(self) -> PlanLine | None:
        found = self.store.plans.value.plans if self.store.plans.value is not None else []
        return next((one for one in found if plans.key_of(one) == self.selected), None)

    def list_rows(self, width: int) -> list[Row]:
        return plans.list_rows(
            self.store.plans.value, width, f"{self.legion_app.keys.shown()['new_plan']} plans a goal"
        )

    def page_feed(self, key: str) -> Feed[PlanPage] | None:
        self._chosen = set()
        if self.plan is None:
            return None
        id = plans.number_of(self.plan)
        return self.store.feed(lambda legion: legion.plan_page(id), of_kinds("plan.", "ticket.", "run."))

    def page_rows(self, width: int) -> list[Row]:
        return plans.page_rows(self.page, width, chosen=self._chosen)

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        if event.rows is self._list:
            self._page_rows.focus()
        else:
            self.action_mark()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        offers = self.plan.offers if self.plan is not None else []
        offered = {
            "approve": "approve_plan" in offers,
            "mark": "approve_plan" in offers and self.is_mounted and self._page_rows.has_focus,
            "reject": "reject_plan" in offers,
            "edit": {"plan_text", "save_plan"} <= {*offers},
            "retry_plan": "retry_plan" in offers,
            "drop_plan": "drop_plan" in offers,
        }
        return offered[action] if action in offered else super().check_action(action, parameters)

    def action_mark(self) -> None:
        """Choose a ticket, or take that back; tickets that were approved before stay."""
        key, page = self._page_rows.selected, self.page
        if page is not None and any(one.key == key and one.ticket is None for one in page.tickets):
            self._chosen ^= {key}
            self._renew_page()

    def action_approve(self) -> None:
        plan, page = self.plan, self.page
        if plan is None or page is None:
            return
        keys = [one.key for one in page.tickets if one.key in self._chosen]
        what = (
            f"{', '.join(keys)} of {plan.id}"
            if keys
            else f"{count(plan.tickets - plan.approved, 'ticket')} of {plan.id}"
        )
        findings = f" {count(len(page.findings), 'finding')} are left." if page.findings else ""
        wanted = ApprovePlan(tickets=keys, anyway=bool(page.findings), request=str(uuid.uuid4()))
        question = f"Approve {what} ({clean(plan.goal)[:200]})? They are dispatched at once.{findings}"
        written = f"Plan {plan.id} from this specification?"
        self._ask(plan, written if plan.state == "written" else question, wanted)

    def _ask(self, plan: PlanLine, question: str, wanted: ApprovePlan) -> None:
        id = plans.number_of(plan)
        self.legion_app.ask(question, lambda legion: legion.approve_plan(id, wanted).message)

    def action_reject(self) -> None:
        if self.plan is not None:
            self.legion_app.reject_plan(plans.number_of(self.plan))

    def action_retry_plan(self) -> None:
        if self.plan is not None:
            id = plans.number_of(self.plan)
            self.legion_app.send(lambda legion: f"{legion.retry_plan(id).plan.id} is planned again.")

    def action_drop_plan(self) -> None:
        if self.plan is not None:
            self.legion_app.drop_plan(plans.number_of(self.plan), f"{self.plan.id} ({clean(self.plan.goal)[:200]})")

    def action_edit(self) -> None:
        if self.plan is not None:
            self.run_worker(self._edit(plans.number_of(self.plan)), exclusive=True)

    async def _edit(self, id: int) -> None:
        ask = self.store.requests.ask
        try:
            found = await ask(lambda legion: legion.plan_text(id))
            text = edited(self.app, found.text, found.plan)
            if text is None or not text.strip() or text == found.text:
                self.app.notify("Nothing was changed.")
                return
            wanted = SavePlan(text=text, version=found.version)
            saved = await ask(lambda legion: legion.save_plan(id, wanted))
        except LegionError as error:
            self.app.notify(clean(error.message), severity="error", markup=False, timeout=15)
        else:
            self.app.notify(f"{saved.plan.id}: {plans.why(saved.plan)}", markup=False)
