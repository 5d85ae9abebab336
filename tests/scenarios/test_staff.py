"""Standing agents: a manager hires, they write to each other, results come up the tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.wire.agents import InterruptAgent
from legion.wire.mail import ReadMail
from tests.scenarios.victims import until
from tests.support.gates import Gate
from tests.support.models import Company, company
from tests.support.staff import Staff, bash, tool


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("staff"), stand_in=True) as one:
        yield one


def gate_of(here: Company, name: str) -> Gate:
    return Gate(here.squad.folder / "gates", name)


def test_a_manager_hires_two_who_write_to_each_other_and_the_results_come_up_the_tree(here: Company):
    staff = Staff(here)
    gate = gate_of(here, "tree")
    hires = ", ".join(tool("legion-hire", task=f"rehearsal: {name}", name=name) for name in ("wren", "rob"))
    staff.script("boss", f"calls = [{hires}]", 'say = "I hired two."')
    staff.script("wren", f"call = {tool('legion-tell', to='rob', message='rehearsal: heron')}", 'say = "I told rob."')
    staff.script("rob", 'say = "I am there."')
    answer = tool("legion-tell", to="wren", message="rehearsal: thanks")
    staff.script("heron", f'expect = "message.*from wren"\ncall = {answer}', 'say = "I answered wren."')
    staff.script("thanks", 'say = "Wren is thankful."')
    staff.script(
        "busy", f'say = "I stand at the gate."\n{bash(f"echo draft > draft.txt; {gate.pause}")}', 'say = "Through."'
    )
    staff.script("later", 'say = "I heard it later."')
    staff.script("other", 'expect = "rehearsal: other"\nsay = "I do the other thing."')

    boss = staff.hire("boss")
    here.project.until_true(
        lambda: "Wren is thankful." in staff.results("wren") and "I answered wren." in staff.results("rob")
    )
    staff.until_idle()
    tree = staff.lines()
    assert (tree["wren"].parent, tree["rob"].parent, tree["boss"].parent) == (boss.id, boss.id, "root")
    said = " ".join(staff.conversation("boss"))
    for words in ("I told rob.", "Wren is thankful.", "I answered wren."):
        assert words in said
    assert staff.results("boss")[0] == "I hired two."

    # A message arrives while it is busy, and begins its next turn.
    assert "(now working)" in staff.tell("rob", "rehearsal: busy").message
    gate.arrived()
    assert "it is working" in staff.tell("rob", "rehearsal: later").message
    gate.open()
    here.project.until_true(lambda: "I heard it later." in staff.results("rob"))
    assert staff.results("rob")[-2:] == ["Through.", "I heard it later."]

    # It is interrupted in the middle of a step, and goes on with something else in the same turn.
    staff.tell("rob", "rehearsal: busy")
    gate.arrived()
    turns = len(staff.page("rob").turns)
    heard = here.squad.client.interrupt_agent(InterruptAgent(id="rob", text="rehearsal: other"))
    assert heard.heard is True
    here.project.until_true(lambda: "I do the other thing." in staff.results("rob"))
    staff.until_idle("rob")
    assert len(staff.page("rob").turns) == turns

    # One is fired in the middle of a turn, with mail that it has not read.
    staff.tell("wren", "rehearsal: busy")
    gate.arrived()
    staff.tell("wren", "You never read this.")
    staff.fire("wren")
    here.project.until_true(lambda: all(turn.ended_at for turn in staff.page("wren").turns))
    staff.until_idle()
    (dead,) = here.squad.client.mail(ReadMail(dead=True)).messages
    assert (dead.text, dead.recipient_name) == ("You never read this.", "wren")
    back = [one for one in staff.mail_of("root") if one.kind == "returned"]
    assert [one.about for one in back] == [dead.id]
    saved = staff.page("wren").turns[-1].saved
    assert saved is not None
    assert here.project.hub_git("show", f"{saved}:draft.txt") == "draft\n"
    assert not (here.project.worktrees / "agent-2").exists()
    assert "which reported to you, was fired" in " ".join(staff.conversation("boss"))
    staff.check()
    gate.close()


def test_a_person_sees_all_of_it_in_a_terminal(here: Company):
    staff = Staff(here)
    gate = gate_of(here, "terminal")
    staff.script("tess", 'say = "Hello."', f'say = "I wait."\n{bash(gate.pause)}', 'say = "Done."')
    said = here.told("hire", "rehearsal: tess", "--name", "tess", "--role", "tester", "--wait", "--timeout", "60")
    assert said.startswith("Hired: ")
    id = said.split()[1]
    assert said.splitlines()[1] == "Hello."
    screen = here.told("status")
    assert "You: root (idle)" in screen
    assert "Pending messages: " in screen
    assert here.told("tell", id[:8], "go").strip() == f"Message delivered to {id} (now working)"
    gate.arrived()
    assert "working" in here.told("agents", "--tree")
    assert here.told("tell", "tess", "and then?").startswith(f"Message queued for {id}: it is working")
    gate.open()
    staff.until_idle("tess")
    page = here.told("status", "tess")
    assert ("role" in page, "tester" in page, "Turns" in page) == (True, True, True)
    mail = here.told("mail")
    assert mail.count("tess to root") == 3
    assert "No message waits." in here.told("mail")
    assert here.told("fire", "tess").strip() == f"Fired: {id}"
    assert here.cli("tell", "tess", "hello").returncode == 3
    assert here.cli("fire", "tess").returncode == 3
    assert here.cli("tell", "nobody", "hello").returncode == 3
    assert here.cli("interrupt", "tess").returncode == 3
    gate.close()


def test_a_large_message_is_read_by_reference_in_its_turn_and_in_every_later_one(here: Company):
    staff = Staff(here)
    look = "for f in $LEGION_STATE.mail/*; do tail -c 12 $f; echo x > $f; done; true"
    read = 'expect = "all of it is in"\n' + bash(look)
    staff.script("clerk", 'say = "Ready."', read, 'expect = "END-OF-IT"\nsay = "Read."')
    staff.script("again", bash(look), 'expect = "END-OF-IT"\nsay = "It is still there."')
    staff.hire("clerk")
    here.project.until_true(lambda: staff.results("clerk") == ["Ready."])
    staff.tell("clerk", "A" * 100_000 + "END-OF-IT")
    here.project.until_true(lambda: staff.results("clerk")[1:] == ["Read."])
    staff.tell("clerk", "rehearsal: again")
    here.project.until_true(lambda: staff.results("clerk")[2:] == ["It is still there."])
    assert max(len(words) for words in staff.conversation("clerk")) < 20_000
    staff.check()
    staff.fire("clerk")


def test_a_leader_that_delegates_has_no_tools_to_work_with_and_gives_them_to_others(here: Company):
    staff = Staff(here)
    hires = tool("legion-hire", task="rehearsal: hand", name="hand")
    ticket = tool("legion-dispatch", title="by a leader", text="rehearsal: led")
    staff.script("chief", bash("echo x > chief.txt"), f"calls = [{hires}, {ticket}]", 'say = "Delegated."')
    staff.script("hand", bash("echo hand > hand.txt"), 'say = "Worked."')
    staff.script("led", bash("echo led > led.txt"), 'say = "Done."')
    staff.hire("chief", delegate=True)
    here.project.until_true(lambda: "Worked." in staff.results("hand") and "Delegated." in staff.results("chief"))
    failed = [event.facts["failed"] for event in staff.journal(len(staff.lines()) - 1) if event.kind == "returned"]
    assert failed == [True, False, False]
    assert (staff.lines()["chief"].delegate, staff.lines()["hand"].delegate) == (True, False)
    saved = staff.page("hand").turns[-1].saved
    assert here.project.hub_git("show", f"{saved}:hand.txt") == "hand\n"
    number = max(here.project.states())
    here.project.until(number, "done")
    assert here.project.landed("led.txt") == "led\n"
    assert "Legion's own; to give: all" in here.told("status", "chief")
    staff.check()
    staff.fire("chief", subtree=True)


def test_a_wider_wish_is_refused_with_what_is_allowed(here: Company):
    staff = Staff(here)
    spec = tool("legion-hire", task="rehearsal: rob", name="mole", tools=["Read", "Bash"])
    staff.script("narrow", f"call = {spec}", 'expect = "You cannot give Bash"\nsay = "Refused."')
    staff.hire("narrow", tools=["Read", "legion-hire"], headcount=3)
    here.project.until_true(lambda: staff.results("narrow") == ["Refused."])
    assert "mole" not in staff.lines()
    staff.fire("narrow")


def test_mail_outlives_the_daemon_and_wakes_its_agent_after_a_restart(here: Company, tmp_path: Path):
    staff = Staff(here)
    staff.script("sleeper", 'say = "First."', 'say = "Second."')
    staff.hire("sleeper")
    staff.until_idle("sleeper")
    here.project.pause()
    assert "legion resume" in staff.tell("sleeper", "wake up").message
    here.squad.kill()
    here.start()
    assert staff.lines()["sleeper"].waiting == 1
    here.project.resume()
    here.project.until_true(lambda: staff.results("sleeper") == ["First.", "Second."])
    staff.check()
    staff.fire("sleeper")


def test_who_is_asked_to_leave_may_refuse_with_a_reason(here: Company):
    staff = Staff(here)
    staff.script("stayer", 'say = "Hello."', 'say = "STAY: the release is half done."', 'say = "All is handed over."')
    staff.hire("stayer")
    staff.until_idle("stayer")
    assert "is asked to leave" in here.told("fire", "stayer", "--ask")
    here.project.until_true(lambda: "STAY: the release is half done." in staff.results("stayer"))
    staff.until_idle("stayer")
    assert staff.lines()["stayer"].fired_at is None
    here.told("fire", "stayer", "--ask")
    here.project.until_true(lambda: staff.lines()["stayer"].fired_at is not None)
    assert staff.results("stayer")[-1] == "All is handed over."
    staff.check()


def test_a_spent_budget_ends_the_turn_and_what_was_written_is_saved(here: Company):
    staff = Staff(here)
    # Words and not a long prompt: that one would have to be compacted before it could go on.
    dear = "usage = {input = 1000, output = 80000, cache_read = 0, cache_write = 0}"
    staff.script("spender", f"{bash('echo draft > spent.txt')}\n{dear}", bash("echo more > more.txt"), 'say = "Done."')
    staff.hire("spender", budget=1.0)
    here.project.until_true(lambda: bool(staff.results("spender")))
    (said,) = staff.results("spender")
    assert said.startswith("spender did not complete its turn: The agent has spent its budget")
    (turn,) = staff.page("spender").turns
    assert turn.outcome == "out_of_budget"
    # The gateway writes down what was spent within a second.
    until(lambda: staff.lines()["spender"].left == 0.0, here, "what it spent")
    assert here.project.hub_git("show", f"{turn.saved}:spent.txt") == "draft\n"

    # The person is asked once, and what they give lets it go on.
    (question,) = here.squad.client.inbox().questions
    assert (question.kind, question.name, question.choices) == ("budget", "spender", ["more", "leave"])
    here.told("answer", str(question.id), "more")
    here.project.until_true(lambda: len(staff.results("spender")) == 2)
    # Its program may count the refusal as words of the model: then the script is further than it was.
    assert staff.results("spender")[1] in ("Done.", "Noted.")
    assert 0.5 < (staff.lines()["spender"].left or 0.0) <= 1.0
    assert "dollars more: continue." in " ".join(staff.conversation("spender"))
    assert here.squad.client.inbox().questions == []
    staff.check()
    staff.fire("spender")


def test_more_money_for_a_report_comes_out_of_what_its_parent_has_left(here: Company):
    staff = Staff(here)
    dear = "usage = {input = 1000000, output = 10, cache_read = 0, cache_write = 0}"
    hire = tool("legion-hire", task="rehearsal: junior", name="junior", budget=1.0)
    staff.script("senior", f"call = {hire}", 'say = "Hired."')
    staff.script("junior", f"{bash('true')}\n{dear}", bash("true"), 'say = "Done."')
    staff.hire("senior", budget=2.0)
    here.project.until_true(lambda: bool(here.squad.client.inbox().questions))
    until(lambda: staff.lines()["junior"].left == 0.0, here, "what it spent")
    (question,) = here.squad.client.inbox().questions
    refused = here.cli("answer", str(question.id), "more")
    assert "would need" in refused.stderr
    assert [one.id for one in here.squad.client.inbox().questions] == [question.id]
    here.told("answer", str(question.id), "leave")
    staff.until_idle()
    staff.fire("senior", subtree=True)
