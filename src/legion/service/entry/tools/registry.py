"""All tools by name: which caller sees which, and the call of one with JSON arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from legion.config.sections.claude import Answers
from legion.domain.agents import tools
from legion.domain.agents.extra_rights import ExtraRight
from legion.domain.agents.tools import Tool
from legion.domain.errors import NotAllowed, NotFound
from legion.domain.text import to_json
from legion.jobs.agent import plan_approval, tool_access
from legion.jobs.board import Board
from legion.service.entry.tools import agents as people
from legion.service.entry.tools import leader, questions, tickets
from legion.service.entry.tools.call import Data, NotYet, ToolRequest, checked
from legion.service.operations import Caller, Service
from legion.service.shared.commit_signal import CommitSignal
from legion.store.staff import agents
from legion.wire.agents import ToolAnswer, ToolCall, ToolLine, Tools

_HANDLERS: Mapping[Tool, Callable[[ToolRequest], Data]] = {
    Tool.DISPATCH: tickets.dispatch,
    Tool.CHECK: tickets.check,
    Tool.STATUS: tickets.status,
    Tool.STOP: tickets.stop,
    Tool.REPORT: tickets.report,
    Tool.DEPS: tickets.deps,
    Tool.HIRE: people.hire,
    Tool.TELL: people.tell,
    Tool.BROADCAST: people.broadcast,
    Tool.INTERRUPT: people.interrupt,
    Tool.FIRE: people.fire,
    Tool.AGENTS: people.agents,
    Tool.MAIL: people.mail,
    Tool.CLAIM: tickets.claim,
    Tool.PLAN: people.plan,
    Tool.ASK: questions.ask,
    Tool.ANSWER: questions.answer,
    Tool.NOTE: leader.note,
    Tool.GOAL: leader.goal,
}


class ToolRegistry:
    def __init__(self, context: Board, news: CommitSignal) -> None:
        self._context = context
        self._news = news

    def seen(self, caller: Caller) -> tuple[Tool, ...]:
        if caller.is_person:
            return tools.OF_THE_PERSON
        if caller.ticket is not None:
            return tools.OF_TICKETS
        with self._context.store.read() as tx:
            agent, opened = (
                plan_approval.reader(tx, agents.get(tx, caller.id)),
                tool_access.rights(self._context, tx, caller.id),
            )
        return tools.of_agent(agent, answers=self._context.user.claude.answers is Answers.LEADERS, opened=opened)

    def listed(self, caller: Caller) -> Tools:
        opened = self._opened(caller)
        texts = [(tool, tools.described(tool, opened)) for tool in self.seen(caller)]
        return Tools(
            tools=[ToolLine(name=tool.value, description=text.words, parameters=text.schema()) for tool, text in texts]
        )

    def call(self, service: Service, caller: Caller, name: str, wanted: ToolCall, cwd: str) -> ToolAnswer:
        tool = self._known(caller, name)
        arguments = checked(tool, tools.described(tool, self._opened(caller)).takes, wanted.arguments)
        call = ToolRequest(
            context=self._context,
            news=self._news,
            service=service,
            caller=caller,
            arguments=arguments,
            request=wanted.request,
            cwd=cwd,
        )
        try:
            data = _HANDLERS[tool](call)
        except NotYet:
            return ToolAnswer(again=True)
        return ToolAnswer(text=to_json(data, ensure_ascii=False, separators=(",", ":")), data=data)

    def _opened(self, caller: Caller) -> frozenset[ExtraRight]:
        """The person has no extra rights here, and dispatches with a driver by other means."""
        if caller.is_person or caller.ticket is not None:
            return frozenset()
        with self._context.store.read() as tx:
            return tool_access.rights(self._context, tx, caller.id)

    def _known(self, caller: Caller, name: str) -> Tool:
        seen = self.seen(caller)
        try:
            tool = Tool(name)
        except ValueError:
            listed = ", ".join(one.value for one in seen)
            raise NotFound(f"There is no tool {name[:40]!r}: use one of {listed}.") from None
        if tool not in seen:
            listed = ", ".join(one.value for one in seen)
            raise NotAllowed(f"You may not use {name}: you have {listed}.")
        return tool
