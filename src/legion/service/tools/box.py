"""All tools by name: who sees which, and a call from words to an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from legion.config.claude import Answers
from legion.domain import tools as rules
from legion.domain.errors import NotAllowed, NotFound
from legion.domain.opening import Right
from legion.domain.tools import Tool
from legion.jobs import opening, planning
from legion.jobs.world import World
from legion.service.facade import Service
from legion.service.news import News
from legion.service.tools import asking, board, people
from legion.service.tools.call import Call, Data, NotYet, checked
from legion.store import agents
from legion.wire.callers import Caller
from legion.wire.tools import ToolAnswer, ToolCall, ToolLine, Tools

_HANDLERS: Mapping[Tool, Callable[[Call], Data]] = {
    Tool.DISPATCH: board.dispatch,
    Tool.CHECK: board.check,
    Tool.STATUS: board.status,
    Tool.STOP: board.stop,
    Tool.REPORT: board.report,
    Tool.DEPS: board.deps,
    Tool.HIRE: people.hire,
    Tool.TELL: people.tell,
    Tool.BROADCAST: people.broadcast,
    Tool.INTERRUPT: people.interrupt,
    Tool.FIRE: people.fire,
    Tool.AGENTS: people.agents,
    Tool.MAIL: people.mail,
    Tool.CLAIM: board.claim,
    Tool.PLAN: people.plan,
    Tool.ASK: asking.ask,
    Tool.ANSWER: asking.answer,
}


class ToolBox:
    def __init__(self, world: World, news: News) -> None:
        self._world = world
        self._news = news

    def seen(self, caller: Caller) -> tuple[Tool, ...]:
        if caller.is_person:
            return rules.OF_THE_PERSON
        if caller.ticket is not None:
            return rules.OF_TICKETS
        with self._world.store.read() as tx:
            agent, opened = planning.reader(tx, agents.get(tx, caller.id)), opening.rights(self._world, tx, caller.id)
        return rules.of_agent(agent, answers=self._world.user.claude.answers is Answers.LEADERS, opened=opened)

    def listed(self, caller: Caller) -> Tools:
        opened = self._opened(caller)
        texts = [(tool, rules.described(tool, opened)) for tool in self.seen(caller)]
        return Tools(
            tools=[ToolLine(name=tool.value, description=text.words, parameters=text.schema()) for tool, text in texts]
        )

    def call(self, service: Service, caller: Caller, name: str, wanted: ToolCall, cwd: str) -> ToolAnswer:
        tool = self._known(caller, name)
        arguments = checked(tool, rules.described(tool, self._opened(caller)).takes, wanted.arguments)
        call = Call(
            world=self._world,
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
        return ToolAnswer(text=json.dumps(data, ensure_ascii=False, separators=(",", ":")), data=data)

    def _opened(self, caller: Caller) -> frozenset[Right]:
        """The person has no need of it, and dispatches with a driver by other means."""
        if caller.is_person or caller.ticket is not None:
            return frozenset()
        with self._world.store.read() as tx:
            return opening.rights(self._world, tx, caller.id)

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
