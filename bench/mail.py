"""Messages between agents: how many a minute pass through the store, written, drained into prompts and heard."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from bench.report import Report
from legion.domain.agents.agent import ROOT
from legion.domain.agents.mail import Delivery
from legion.domain.runs import Outcome
from legion.service.agents import hire, mail
from legion.wire.agents import HireAgent
from legion.wire.mail import NewMessage
from tests.jobs.office import Office, all_mail

_MESSAGES, _AGENTS, _SENDERS = 10_000, 20, 4


def run(folder: Path, report: Report) -> None:
    office = Office(folder, slots=_AGENTS)
    ids = [hire.hire(office.context, ROOT, HireAgent(task="read", cwd=str(office.root))).id for _ in range(_AGENTS)]
    began = time.monotonic()
    senders = [threading.Thread(target=_send, args=(office, ids, number)) for number in range(_SENDERS)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    written = time.monotonic() - began
    while _drain(office):
        pass
    whole = time.monotonic() - began
    with office.context.store.write() as tx:
        lost = sum(message.delivery is not Delivery.HEARD for message in all_mail(tx) if message.recipient != ROOT)
    heard = [id for agent in office.standing() for id in office.heard(agent)]
    report.value(f"{_MESSAGES:,} messages written by {_SENDERS} at once", written, "s", aim=60)
    report.value("the same until all of them are heard", whole, "s", aim=60)
    report.value("lost or doubled", lost + len(heard) - len(set(heard)), "messages", aim=0)
    office.close()


def _send(office: Office, ids: list[str], number: int) -> None:
    for count in range(_MESSAGES // _SENDERS):
        mail.tell(
            office.context, ROOT, NewMessage(to=ids[count % _AGENTS], text=f"message {number} {count} " + "x" * 400)
        )


def _drain(office: Office) -> bool:
    """One turn of everybody who has mail."""
    office.conduct()
    turns = list(office.claims)
    for number in turns:
        office.take_prompt(number)
        office.end_turn(number, Outcome.FINISHED)
    return bool(turns)
