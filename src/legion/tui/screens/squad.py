"""The squad: the conversation with a standing agent, the board, and a pane for each agent at work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from textual import events, on
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input

from legion.client.text import board
from legion.client.text.plans import KEY as PLAN
from legion.client.text.plans import plan_row, waiting
from legion.client.text.rows import Row, clean, note
from legion.client.text.tickets import Group, group_of
from legion.tui.keys import KeyContext
from legion.tui.screens.agents import switch_delegation
from legion.tui.screens.ticket_place import COUNTED_EVERY, TicketPlace
from legion.tui.views import squad
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.divider import STEP, Divider, TextLine, moved
from legion.tui.widgets.row_list import RowList
from legion.wire.agents import AgentLine, InterruptAgent
from legion.wire.mail import NewMessage
from legion.wire.tickets import TicketLine

_NARROW = 76
_USUAL_SPLIT = 45
_DRAFT = "talk"


class SquadPlace(TicketPlace):
    NAME = "squad"
    CONTEXTS = (KeyContext.SQUAD, KeyContext.TICKETS, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.SQUAD, KeyContext.TICKETS)
    DEFAULT_CSS = """
    SquadPlace #needs { display: none; width: 1fr; border-bottom: solid $panel; }
    SquadPlace #needs.-shown { display: block; }
    SquadPlace #halves { height: 1fr; }
    SquadPlace #left > * { width: 1fr; }
    SquadPlace #talk { height: 6; }
    SquadPlace #talk.-talks { height: 1fr; }
    SquadPlace #say { display: none; border: none; height: 1; background: $panel; padding: 0 1; }
    SquadPlace #say.-shown { display: block; }
    SquadPlace #tickets { height: 1fr; border-top: solid $panel; }
    SquadPlace #panes { width: 1fr; height: 1fr; }
    SquadPlace.-narrow Divider, SquadPlace.-narrow #talk { display: none; }
    SquadPlace.-narrow #halves { layout: vertical; }
    SquadPlace.-narrow #left { width: 1fr; height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._needs = RowList(id="needs")
        self._tickets = RowList(id="tickets")
        self._panes = RowList(id="panes")
        self._talk = RowList(id="talk", follow=True)
        self._left_width = ""
        self._reads_mail = False
        self._lent_at = ""
        """The ticket that was selected when the board got the focus of the panes."""
        self._streams = False
        """The leader was at work when its output was drawn last."""

    def compose_body(self) -> Iterable[Widget]:
        with Vertical(id="body"):
            yield self._needs
            with Horizontal(id="halves"):
                with Vertical(id="left"):
                    yield self._talk
                    yield TextLine(self.legion_app.drafts.get(_DRAFT), id="say")
                    yield self._tickets
                yield Divider()
                yield self._panes

    def on_mount(self) -> None:
        self._panes.focus()
        # Seconds pass without an event.
        self.set_interval(1.0, self._renew_panes)
        self.set_interval(COUNTED_EVERY, self._renew_tickets)

    @property
    def _split(self) -> int:
        kept = self.legion_app.drafts.get("ui.split")
        return moved(int(kept), 0) if kept.isdigit() else _USUAL_SPLIT

    def watches(self) -> Iterable[Callable[[], None]]:
        store = self.store
        yield store.status.watch(self.renew)
        yield store.graph.watch(self._renew_tickets)
        yield store.plans.watch(self._renew_tickets)
        yield store.agents.watch(self._renew_talk)
        self._reads_mail = False
        yield store.output.watch(self._renew_output)

    def renew(self) -> None:
        if self.is_mounted:
            self._divide_again()
            self._renew_tickets()
            self._renew_talk()
            self._renew_panes()

    @property
    def tickets(self) -> dict[int, TicketLine]:
        return self.store.tickets

    @property
    def leader(self) -> AgentLine | None:
        project = self.store.project
        return squad.leader_of(self.store.agents.value, project.name if project is not None else "")

    @property
    def ticket(self) -> TicketLine | None:
        if not self.is_mounted:
            return None
        # Only the list with the focus shows a selection, so no other one is meant.
        focused = self.focused
        key = focused.selected if isinstance(focused, RowList) else ""
        return self.tickets.get(int(key)) if key.isdigit() else None

    def _renew_tickets(self) -> None:
        rows, width = self._tickets, self.size.width - 1
        if not rows.size.width or self.store.status.value is None or not self.is_watching:
            return
        chain, keys = board.longest_chain(self.store.graph.value), self.legion_app.keys.shown()
        needs = [one for one in self.tickets.values() if group_of(one) is Group.NEEDS_YOU]
        others = [one for one in self.tickets.values() if group_of(one) is not Group.NEEDS_YOU]
        plans = [row for plan in waiting(self.store.plans.value) for row in plan_row(plan, width)]
        self._show_needs([*plans, *board.listed(needs, width, chain, keys=keys)])
        made = board.listed(others, rows.size.width - 1, chain)
        rows.put(made or [note("Nothing else is on the board." if needs else "The board is empty.")])

    def _show_needs(self, rows: list[Row]) -> None:
        """First and over the full width, but at most a third of the screen."""
        height = min(len(rows), max(3, self.size.height // 3)) + 1
        if not rows and self._needs.has_focus:
            self._panes.focus()
        self._needs.set_class(bool(rows), "-shown")
        self._needs.styles.height = height
        self._needs.put(rows)

    def _renew_talk(self) -> None:
        rows, keys = self._talk, self.legion_app.keys.shown()
        leader = self.leader
        if leader is not None and not self._reads_mail and self.is_watching:
            # Reading marks messages as read, so they are read only where they are shown.
            self._reads_mail = True
            self._watched.append(self.store.mail.watch(self._renew_talk))
        rows.set_class(leader is not None, "-talks")
        say = self.query_one("#say", Input)
        say.set_class(leader is not None, "-shown")
        say.placeholder = f"Type to {clean(leader.name)}; Enter sends" if leader is not None else ""
        width = max(20, rows.size.width - 1)
        if leader is None:
            rows.put(squad.offer_rows(keys, width))
        else:
            rows.put(squad.talk_rows(leader, self.store.mail.value, width, self._live(leader)))

    def _live(self, leader: AgentLine) -> list[str]:
        """What it has printed in its present turn."""
        output = self.store.output
        run = next((one.run for one in output.running if one.agent == leader.id), None)
        tail = output.tails.get(run) if run is not None else None
        return tail.last(squad.LIVE_LINES) if tail is not None else []

    def _renew_output(self) -> None:
        self._renew_panes()
        leader = self.leader
        if leader is not None and self.is_watching and self._talk.size.width:
            at_work = any(one.agent == leader.id for one in self.store.output.running)
            if at_work or self._streams:
                self._streams = at_work
                self._renew_talk()

    def _renew_panes(self) -> None:
        rows, output = self._panes, self.store.output
        if not self.is_watching or not rows.size.width:
            return
        tails = {run: tail.last(squad.MOST_LINES) for run, tail in output.tails.items()}
        size = rows.size
        leader = None if self.has_class("-narrow") else self.leader
        # The leader's own output is in the conversation, unless that is hidden.
        running = [one for one in output.running if leader is None or one.agent != leader.id]
        made = squad.pane_rows(running, tails, self.tickets, width=size.width - 1, height=size.height, now=time.time())
        rows.put(made or self._idle(size.width - 1))
        self._focus_what_opens(bool(made))

    def _focus_what_opens(self, has_panes: bool) -> None:
        """Without a pane Enter would open nothing, so the board has the focus until there is one again.

        The focus is set at once: by `focus` it would move later, also after the panes are back.
        """
        board = self._needs if self._needs.selected else self._tickets
        if not has_panes and self.focused is self._panes and board.selected:
            self._lent_at = board.selected
            self.set_focus(board)
        elif has_panes and self._lent_at:
            focused = self.focused
            if focused in (self._needs, self._tickets) and self._lent_at == getattr(focused, "selected", ""):
                self.set_focus(self._panes)
            self._lent_at = ""

    def _idle(self, width: int) -> list[Row]:
        groups = [group_of(ticket) for ticket in self.tickets.values()]
        at_work, waiting = groups.count(Group.AT_WORK), groups.count(Group.WAITING)
        return squad.idle_rows(at_work, waiting, self.legion_app.keys.shown(), width)

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        if event.key.isdigit():
            self.legion_app.open_ticket(int(event.key))
        elif event.key.startswith(PLAN):
            self.legion_app.open_plan(event.key)
        else:
            self.legion_app.open_agent(event.key.removeprefix("agent "))

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        self.refresh_bindings()

    def on_descendant_focus(self) -> None:
        self.refresh_bindings()

    # Agents at work

    @property
    def _talks(self) -> bool:
        """Whether the person types to the leader."""
        return isinstance(self.focused, Input)

    @property
    def _standing(self) -> AgentLine | None:
        """The standing agent that the focused pane is about."""
        key, known = self._panes.selected if self._panes.has_focus else "", self.store.agents.value
        return next((one for one in known.agents if key == f"agent {one.id}"), None) if known is not None else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "interrupt" and self.is_mounted and self._standing is not None:
            return True
        if action == "delegate":
            return self.is_mounted and self._talks and self.leader is not None
        return super().check_action(action, parameters)

    def action_interrupt(self) -> None:
        standing = self._standing
        if standing is None:
            super().action_interrupt()
            return
        wanted = InterruptAgent(id=standing.id, text="")
        question = f"Interrupt {clean(standing.name)}? It idles until it gets a message."
        self.legion_app.ask(question, lambda legion: legion.interrupt_agent(wanted).message)

    def action_delegate(self) -> None:
        if self.leader is not None:
            switch_delegation(self.legion_app, self.leader)

    def action_next_agent(self) -> None:
        self._select_agent(1)

    def action_previous_agent(self) -> None:
        self._select_agent(-1)

    def _select_agent(self, by: int) -> None:
        """The first press shows which one is selected, the next ones move."""
        if self._panes.has_focus:
            (self._panes.action_down if by > 0 else self._panes.action_up)()
        self._panes.focus()

    def key_escape(self, event: events.Key) -> None:
        """Leave the line that is typed; what is in it is kept."""
        if self._talks:
            event.stop()
            self._panes.focus()

    @on(Input.Changed, "#say")
    def _keep(self, event: Input.Changed) -> None:
        self.legion_app.drafts.put(_DRAFT, event.value)

    @on(Input.Submitted, "#say")
    def _say(self, event: Input.Submitted) -> None:
        leader, text = self.leader, event.value.strip()
        if leader is None or not text:
            return
        # A leader at work reads it in this turn, as in any conversation.
        letter = NewMessage(to=leader.id, text=text, now=leader.working)

        def sent() -> None:
            # Only what was sent: the person may have typed on.
            if event.input.value.strip() == text:
                event.input.value = ""

        self.legion_app.send(lambda legion: legion.tell_agent(letter).message, then=sent, waits=True)

    # The divider

    def action_narrower(self) -> None:
        self._divide(moved(self._split, -STEP))

    def action_wider(self) -> None:
        self._divide(moved(self._split, STEP))

    def on_divider_dragged(self, event: Divider.Dragged) -> None:
        self._divide(event.percent)

    def _divide(self, percent: int) -> None:
        self.legion_app.drafts.put("ui.split", str(percent))
        self.renew()

    def _divide_again(self) -> None:
        """On a narrow terminal the panes are below each other."""
        narrow = self.size.width < _NARROW
        self.set_class(narrow, "-narrow")
        wanted = "1fr" if narrow else f"{self._split}%"
        if wanted != self._left_width:
            self._left_width = wanted
            self.query_one("#left").styles.width = wanted
            # The rows are made for the new width when it is known.
            self.call_after_refresh(self.renew)
