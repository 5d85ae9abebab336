"""Standing agents: their tree, the page and the mail of the selected one; message, interrupt, fire, plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.containers import Horizontal
from textual.widget import Widget

from legion.client.legion import Legion
from legion.tui.feed import Feed
from legion.tui.keys import KeyContext
from legion.tui.screens.host import UiHost
from legion.tui.screens.place import Place
from legion.tui.screens.prompts import LinePrompt
from legion.tui.store import of_kinds
from legion.tui.views import agents as view
from legion.tui.views.rows import BLANK, clean, head
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.row_list import RowList
from legion.wire.agents import AgentLine, AgentPage, FireAgent, InterruptAgent, PlanVerdict, SetDelegation
from legion.wire.mail import NewMessage

_NARROW = 76


def switch_delegation(app: UiHost, agent: AgentLine) -> None:
    """The same key takes it back, so nothing is asked."""
    wanted = SetDelegation(id=agent.id, on=not agent.delegate)
    app.send(lambda legion: legion.delegate(wanted).message)


class AgentsPlace(Place):
    NAME = "agents"
    CONTEXTS = (KeyContext.AGENTS, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.AGENTS)
    DEFAULT_CSS = """
    AgentsPlace #tree { width: 40%; border-right: solid $panel; }
    AgentsPlace #page { width: 1fr; }
    AgentsPlace.-narrow #body { layout: vertical; }
    AgentsPlace.-narrow #tree { width: 1fr; height: 1fr; border-right: none; border-bottom: solid $panel; }
    AgentsPlace.-narrow #page { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._page: Feed[AgentPage] | None = None
        self._page_of = ""
        self._end_page: Callable[[], None] = lambda: None
        self.wanted = ""
        """The agent to select when the tree is drawn next."""

    def compose_body(self) -> Iterable[Widget]:
        with Horizontal(id="body"):
            yield RowList(id="tree")
            yield RowList(id="page")

    def watches(self) -> Iterable[Callable[[], None]]:
        yield self.store.agents.watch(self.renew)
        yield self.store.mail.watch(self._renew_page)

    @property
    def _tree(self) -> RowList:
        return self.query_one("#tree", RowList)

    @property
    def agent(self) -> AgentLine | None:
        agents = self.store.agents.value
        key = self._tree.selected if self.is_mounted else ""
        return next((one for one in agents.agents if one.id == key), None) if agents is not None else None

    def renew(self) -> None:
        if not self.is_mounted:
            return
        narrow = self.size.width < _NARROW
        if narrow != self.has_class("-narrow"):
            self.set_class(narrow, "-narrow")
            # The rows are made for the new width when it is known.
            self.call_after_refresh(self.renew)
        width = max(20, self._tree.size.width - 1)
        self._tree.put(view.tree_rows(self.store.agents.value, width, self.legion_app.keys.shown()["hire"]))
        if self.wanted:
            self._tree.select(self.wanted)
            self.wanted = ""
        if self.focused is None:
            self._tree.focus()
        self._follow_selection()
        self._renew_page()
        self.refresh_bindings()

    def _follow_selection(self) -> None:
        """Read the page of the selected agent, and only that."""
        id = self.agent.id if self.agent is not None else ""
        if id == self._page_of:
            return
        self._drop_page()
        self._page_of = id
        if id:
            self._page = self.store.feed(lambda legion: legion.agent(id), of_kinds("agent.", "mail.", "run.", "plan."))
            self._end_page = self._page.watch(self._renew_page)

    def _drop_page(self) -> None:
        self._end_page()
        if self._page is not None:
            self.store.drop([self._page])
        self._page, self._page_of = None, ""

    def on_screen_suspend(self) -> None:
        super().on_screen_suspend()
        if not self.is_watching:
            self._drop_page()

    def _renew_page(self) -> None:
        if not self.is_mounted:
            return
        rows = self.query_one("#page", RowList)
        width = max(20, rows.size.width - 1)
        made = view.page_rows(self._page.value, width) if self._page is not None else []
        mail = view.mail_rows(self.store.mail.value, width)
        rows.put([*made, *([BLANK] if made else []), head("Your mail, newest first"), *mail])

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        if event.rows.id == "tree":
            self._follow_selection()
            self._renew_page()
            self.refresh_bindings()

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
        agent = self.agent
        if agent is not None:
            verdict = PlanVerdict(agent=agent.id, approve=True)
            self.legion_app.ask(
                f"Approve the plan of {clean(agent.name)}? It may change files from then on.",
                lambda legion: legion.decide_plan(verdict).message,
            )

    def action_fire(self) -> None:
        agent = self.agent
        if agent is not None:
            self.legion_app.ask(
                f"Fire {clean(agent.name)}? Its work is kept, its unread mail is returned.",
                lambda legion: legion.fire(FireAgent(id=agent.id)).message,
            )

    def action_delegate(self) -> None:
        agent = self.agent
        if agent is not None:
            switch_delegation(self.legion_app, agent)

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
