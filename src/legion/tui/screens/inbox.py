"""The inbox: all that waits for the person, decided with a key, in words, or all alike at once."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable

from textual.widget import Widget

from legion.client.legion import Legion, row_named
from legion.client.text import inbox
from legion.client.text.plans import KEY as PLAN
from legion.client.text.questions import asker
from legion.client.text.rows import clean
from legion.client.text.terminal import count
from legion.tui.keys import KeyContext
from legion.tui.screens.place import Place
from legion.tui.screens.prompts import Choice, LinePrompt, YesNo
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.row_list import RowList
from legion.wire.mail import AnswerQuestion, QuestionLine, WaitingLine
from legion.wire.plans import ApprovePlan

_WITH_A_REASON = ("no", "reject", "back", "changes")
_SHOWN = 400
"""Letters of a question above its answers."""
_RULE = "always"
"""A choice that becomes a rule in the person's settings."""


class InboxPlace(Place):
    NAME = "inbox"
    SHOWS_NEXT = False
    CONTEXTS = (KeyContext.INBOX, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.INBOX)

    def compose_body(self) -> Iterable[Widget]:
        yield RowList(id="body")

    def on_mount(self) -> None:
        # The time that is left passes without an event.
        self.set_interval(5.0, self.renew)

    def watches(self) -> Iterable[Callable[[], None]]:
        yield self.store.inbox.watch(self.renew)
        yield self.store.recent.watch(self.renew)

    def renew(self) -> None:
        if self.is_mounted and self.is_watching:
            width, keys = self.size.width - 1, self.legion_app.keys.shown()
            self._rows.put(inbox.rows(self.store.inbox.value, self.store.recent.value, width, time.time(), keys))
            if self.focused is None:
                self._rows.focus()
            self.refresh_bindings()

    @property
    def _rows(self) -> RowList:
        return self.query_one("#body", RowList)

    @property
    def questions(self) -> list[QuestionLine]:
        return self.store.inbox.value.questions if self.store.inbox.value is not None else []

    @property
    def question(self) -> QuestionLine | None:
        key = self._rows.selected if self.is_mounted else ""
        return next((one for one in self.questions if str(one.id) == key), None)

    @property
    def thing(self) -> WaitingLine | None:
        """What is selected, a question or anything else that waits."""
        found = self.store.inbox.value.waiting if self.store.inbox.value is not None else []
        key = self._rows.selected if self.is_mounted else ""
        return next((one for one in found if inbox.key_of(one) == key), None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        question, thing = self.question, self.thing
        if action in ("yes", "no") and thing is not None and question is None:
            return len(thing.offers) > (action == "no")
        if action in ("yes", "no", "yes_to_all"):
            return question is not None and bool(inbox.choice_for(question, yes=action != "no"))
        if action == "answer":
            return question is not None
        if action in ("open_ticket", "diff"):
            return thing is not None and thing.ticket is not None
        return super().check_action(action, parameters)

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        self.refresh_bindings()

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        thing = self.thing
        if event.key.startswith(PLAN):
            self.legion_app.open_plan(event.key)
        elif self.question is None and thing is not None and thing.ticket is None:
            self.action_yes()
        elif self.question is None:
            self.action_open_ticket()
        else:
            self.action_answer()

    def action_yes(self) -> None:
        self._answer_with_key(yes=True)

    def action_no(self) -> None:
        self._answer_with_key(yes=False)

    def _answer_with_key(self, *, yes: bool) -> None:
        question, thing = self.question, self.thing
        choice = inbox.choice_for(question, yes=yes) if question is not None else ""
        if question is not None and choice in _WITH_A_REASON:
            self._in_words(question, choice)
        elif question is not None and choice:
            self._confirm(question, choice)
        elif question is None and thing is not None:
            self._decide(thing, thing.offers[0 if yes else 1])

    def _decide(self, one: WaitingLine, offer: str) -> None:
        """Each asks once, by name: the list may have moved since the person looked."""
        app, about = self.legion_app, f"#{one.id} {clean(one.title)[:_SHOWN]}"
        plan = f"P{one.id} ({clean(one.title)[:_SHOWN]})"
        match offer:
            case "approve_plan":
                left = "findings" in one.facts
                wanted = ApprovePlan(anyway=left, request=str(uuid.uuid4()))
                question = f"{row_named(offer).asks.format(what=plan)}{' Its findings are left.' if left else ''}"
                app.ask(question, lambda legion: legion.approve_plan(one.id, wanted).message)
            case "reject_plan":
                app.reject_plan(one.id)
            case "retry_plan":
                app.ask(f"Plan {plan} again?", lambda legion: f"{legion.retry_plan(one.id).plan.id} is planned again.")
            case "drop_plan":
                app.drop_plan(one.id, plan)
            case "retry":
                app.ask(f"Try {about} again?", lambda legion: legion.retry(one.id).message)
            case "collect":
                app.collect(one.root)
            case _:
                app.act(offer, about, one.id)

    def _confirm(self, question: QuestionLine, choice: str) -> None:
        """Names what is answered: the list may have moved since the person looked."""
        if choice == _RULE:
            self._confirm_rule(question)
            return
        text = f"Answer `{clean(choice)}` to question {question.id} of {asker(question)}?"

        def go(yes: bool | None) -> None:
            if yes:
                self._send(question, choice)

        self.app.push_screen(YesNo(f"{text}\n\n{clean(question.words)[:_SHOWN]}"), go)

    def action_answer(self) -> None:
        """Choose one of the choices, with words where those matter; or write words where it has no choices."""
        question = self.question
        if question is None:
            return
        if not question.choices:
            self._in_words(question, "")
            return

        def chosen(choice: str | None) -> None:
            if choice in _WITH_A_REASON:
                self._in_words(question, choice)
            elif choice is not None:
                self._confirm(question, choice)

        self.app.push_screen(Choice(clean(question.words)[:_SHOWN], [(one, one) for one in question.choices]), chosen)

    def _in_words(self, question: QuestionLine, choice: str) -> None:
        draft = f"answer.{question.id}"
        about = f"question {question.id} of {asker(question)}"
        title = f"`{clean(choice)}` to {about}: what instead? May be empty" if choice else f"Answer to {about}"

        def given(text: str | None) -> None:
            if text is not None:
                done = lambda: self.legion_app.drafts.put(draft, "")  # noqa: E731 - a name for the callback
                self._send(question, choice or text, text if choice else "", done)

        self.app.push_screen(LinePrompt(title, draft=draft, empty=bool(choice)), given)

    def _confirm_rule(self, question: QuestionLine) -> None:
        rule = clean(question.facts.get("rule", ""))

        def go(yes: bool | None) -> None:
            if yes:
                self._send(question, _RULE)

        self.app.push_screen(YesNo(f"From now on every agent may use this without asking: {rule}. Save this rule?"), go)

    def _send(
        self, question: QuestionLine, choice: str, why: str = "", then: Callable[[], None] = lambda: None
    ) -> None:
        given = AnswerQuestion(choice=choice, why=why)
        self.legion_app.send(lambda legion: legion.answer(question.id, given).message, then=then)

    def action_yes_to_all(self) -> None:
        question = self.question
        if question is None:
            return
        same, choice = inbox.alike(self.questions, question), inbox.choice_for(question, yes=True)
        text = f"Answer {count(len(same), 'question')} of the kind {clean(question.kind)} with `{clean(choice)}`?"
        self.legion_app.ask(text, lambda legion: _answer_all(legion, [one.id for one in same], choice))

    def action_open_ticket(self, tab: str = "live") -> None:
        if self.thing is not None and self.thing.ticket is not None:
            self.legion_app.open_ticket(self.thing.ticket, tab)

    def action_diff(self) -> None:
        self.action_open_ticket("diff")


def _answer_all(legion: Legion, ids: list[int], choice: str) -> str:
    for id in ids:
        legion.answer(id, AnswerQuestion(choice=choice))
    return f"{count(len(ids), 'question is', 'questions are')} answered with {choice}."
