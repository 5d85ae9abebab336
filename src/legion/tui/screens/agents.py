"""Standing agents: their tree, the page and the mail of the selected one; message, interrupt, fire, plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from legion.client.legion import Legion
from legion.client.text import agents
from legion.client.text.rows import BLANK, Row, clean, head
from legion.tui.feed import Feed
from legion.tui.keys import KeyContext
from legion.tui.screens.host import UiHost
from legion.tui.screens.list_and_page import ListAndPage
from legion.tui.screens.prompts import LinePrompt
from legion.tui.store import of_kinds
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.row_list import RowList
from legion.wire.agents import AgentLine, AgentPage, FireAgent, InterruptAgent, PlanVerdict, SetDelegation
from legion.wire.mail import NewMessage


def switch_delegation(app: UiHost, agent: AgentLine) -> None:
    """The same key takes it back, so nothing is asked."""
    app.act("delegate", clean(agent.name), SetDelegation(id=agent.id, on=not agent.delegate))


class AgentsPlace(ListAndPage[AgentPage]):
    NAME = "agents"
    CONTEXTS = (KeyContext.AGENTS, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.AGENTS)

    def watches(self) -> Iterable[Callable[[], None]]:
        yield self.store.agents.watch(self.renew)
        yield self.store.mail.watch(self._renew_page)

    @property
    def agent(self) -> AgentLine | None:
        agents = self.store.agents.value
        return next((one for one in agents.agents if one.id == self.selected), None) if agents is not None else None

    def list_rows(self, width: int) -> list[Row]:
        found = self.store.agents.value
        if found is not None:
            found = replace(found, agents=[one for one in found.agents if one.fired_at is None])
        return agents.rows(found, width, self.legion_app.keys.shown()["hire"])

    def page_feed(self, key: str) -> Feed[AgentPage]:
        return self.store.feed(lambda legion: legion.agent(key), of_kinds("agent.", "mail.", "run.", "plan."))

    def page_rows(self, width: int) -> list[Row]:
        made = agents.page_rows(self.page, width) if self.page is not None else []
        mail = agents.mail_rows(self.store.mail.value, width)
        return [*made, *([BLANK] if made else []), head("Your mail, newest first"), *mail]

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.action_tell()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("tell", "interrupt_agent", "fire", "delegate", "approve", "reject"):
            return self.agent is not None
        return super().check_action(action, parameters)

    def action_tell(self) -> None:
        agent = self.agent
        if agent is not None:
            self._write(
                agent,
                "To",
                "tell",
                lambda text: lambda legion: legion.tell_agent(NewMessage(to=agent.id, text=text)).message,
            )

    def action_interrupt_agent(self) -> None:
        agent = self.agent
        if agent is not None:
            self._write(
                agent,
                "Interrupt; it continues with this, empty: it idles:",
                "interrupt",
                lambda text: lambda legion: legion.interrupt_agent(InterruptAgent(id=agent.id, text=text)).message,
                empty=True,
            )

    def action_reject(self) -> None:
        agent = self.agent
        if agent is not None:
            self._write(
                agent,
                "Why the plan is not good:",
                "reject",
                lambda why: (
                    lambda legion: legion.decide_plan(PlanVerdict(agent=agent.id, approve=False, why=why)).message
                ),
            )

    def action_approve(self) -> None:
        if self.agent is not None:
            verdict = PlanVerdict(agent=self.agent.id, approve=True)
            self.legion_app.act("decide_plan", clean(self.agent.name), verdict)

    def action_fire(self) -> None:
        if self.agent is not None:
            self.legion_app.act("fire", clean(self.agent.name), FireAgent(id=self.agent.id))

    def action_delegate(self) -> None:
        if self.agent is not None:
            switch_delegation(self.legion_app, self.agent)

    def _write(
        self,
        agent: AgentLine,
        title: str,
        name: str,
        call: Callable[[str], Callable[[Legion], str]],
        *,
        empty: bool = False,
    ) -> None:
        draft = f"{name}.{agent.id}"

        def given(text: str | None) -> None:
            if text is not None:
                self.legion_app.send(call(text), then=lambda: self.legion_app.drafts.put(draft, ""), waits=True)

        self.app.push_screen(LinePrompt(f"{title} {clean(agent.name)}", draft=draft, empty=empty), given)
