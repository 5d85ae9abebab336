"""The part of the stand-in that is about standing agents: a tree in memory, and mail that is only written down."""

from __future__ import annotations

from legion.domain.errors import NotFound
from legion.wire.agents import (
    AgentLine,
    AgentList,
    AgentPage,
    Claimed,
    ClaimTicket,
    FireAgent,
    Fired,
    HireAgent,
    Hired,
    InterruptAgent,
    Plan,
    PlanVerdict,
    SubmitTicket,
)
from legion.wire.mail import Broadcast, Mail, MessageLine, NewMessage, ReadMail, Sent


class StaffStandIn:
    def reset_staff(self) -> None:
        self.staff: dict[str, AgentLine] = {}
        self.letters: list[MessageLine] = []

    def hire(self, caller: str, wanted: HireAgent, /) -> Hired:
        id = f"0000000{len(self.staff) + 1}-0000-4000-8000-000000000000"
        self.staff[id] = AgentLine(
            id=id,
            name=wanted.name or f"agent-{len(self.staff) + 1}",
            role=wanted.role,
            parent=caller,
            project="shop",
            model=wanted.model,
            working=False,
            doing="idle",
            waiting=0,
            hired_at=1.0,
            tools=wanted.tools,
            budget=wanted.budget,
            left=wanted.budget,
            headcount=wanted.headcount,
            depth=wanted.depth,
            spent=0.0,
        )
        return Hired(
            id=id,
            name=self.staff[id].name,
            parent=caller,
            model=wanted.model,
            tools=wanted.tools,
            budget=wanted.budget,
            headcount=wanted.headcount,
            depth=wanted.depth,
            message=f"Hired: {id}",
        )

    def fire(self, caller: str, wanted: FireAgent, /) -> Fired:
        line = self._agent(wanted.id)
        del self.staff[line.id]
        return Fired(fired=[line.id], adopted=[], returned=0, message=f"Fired: {line.id}")

    def interrupt_agent(self, caller: str, wanted: InterruptAgent, /) -> Sent:
        line = self._agent(wanted.id)
        return Sent(messages=[], to=[line.id], heard=True if wanted.text else None, message="It is interrupted.")

    def tell_agent(self, caller: str, letter: NewMessage, /) -> Sent:
        line = self._agent(letter.to)
        self._write(caller, line, letter.text)
        heard = "deaf" not in letter.text if letter.now else None
        return Sent(messages=["m"], to=[line.id], heard=heard, message=f"Message delivered to {line.id} (now working)")

    def broadcast(self, caller: str, wanted: Broadcast, /) -> Sent:
        for line in self.staff.values():
            self._write(caller, line, wanted.text)
        return Sent(messages=["m"], to=list(self.staff), message=f"Message sent to {len(self.staff)} agents")

    def claim(self, caller: str, wanted: ClaimTicket, /) -> Claimed:
        return Claimed(ticket=wanted.ticket or 1, title="a ticket", message="Ticket 1 is yours.")

    def submit(self, caller: str, wanted: SubmitTicket, /) -> Claimed:
        return Claimed(ticket=1, title="a ticket", message="End your turn now.")

    def propose_plan(self, caller: str, wanted: Plan, /) -> Sent:
        return Sent(messages=["m"], to=["root"], message="Your plan is proposed.")

    def decide_plan(self, caller: str, wanted: PlanVerdict, /) -> Sent:
        line = self._agent(wanted.agent)
        return Sent(messages=["m"], to=[line.id], message=f"The plan of {line.name} is decided.")

    def mail(self, caller: str, wanted: ReadMail, /) -> Mail:
        return Mail(messages=[] if wanted.dead else list(self.letters))

    def agents(self, caller: str, everybody: bool, /) -> AgentList:
        return AgentList(you=caller, agents=list(self.staff.values()))

    def agent(self, caller: str, id: str, /) -> AgentPage:
        return AgentPage(agent=self._agent(id), task="work", worktree=None, reports=[], turns=[], mail=[])

    def _agent(self, word: str) -> AgentLine:
        for line in self.staff.values():
            if line.name == word or line.id.startswith(word):
                return line
        raise NotFound(f"There is no agent {word}: see `legion agents`.")

    def _write(self, sender: str, line: AgentLine, text: str) -> None:
        self.letters.append(
            MessageLine(
                number=len(self.letters) + 1,
                id=f"m{len(self.letters) + 1}",
                sender=sender,
                sender_name=sender,
                recipient=line.id,
                recipient_name=line.name,
                kind="tell",
                text=text,
                sent_at=1.0,
                delivery="waiting",
                heard_at=None,
                about="",
            )
        )
