"""The places, driven by keys against the real service: what a person presses is what the daemon is asked for."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from legion.domain.questions import QuestionKind
from legion.domain.takeovers import Takeover
from legion.drivers import Program
from legion.jobs.run.job import run_dir
from legion.runner.spec import RunSpec, write_spec
from legion.store.staff import agents
from legion.store.work import runs, takeovers
from legion.tui.screens.prompts import YesNo
from legion.tui.screens.squad import SquadPlace
from legion.wire.agents import HireAgent
from legion.wire.errors import StateConflict
from legion.wire.ticket_pages import Diff
from legion.wire.tickets import Acted
from tests.support.board import Board
from tests.tui.driving import drive, opened

DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n-old = 1\n+new = 1\n+more = 2\n"


def fill(board: Board) -> None:
    board.put(1, "Tables for users", "done")
    board.put(2, "The HTTP side", "working", after=[1])
    board.put(3, "A page to log in", "landing", after=[1])
    board.put(4, "Rate limits", "failed", "gave up", after=[1])
    board.put(5, "End to end", "queued", after=[2, 3])
    board.put(6, "A paused one", "parked")


def test_the_board_follows_events_and_keeps_the_selection(board: Board):
    fill(board)

    async def work() -> None:
        async with opened(board) as ui:
            await ui.shows("Rate limits", "A paused one", "live")
            await ui.press("j")
            first = ui.app.screen.ticket.id  # type: ignore[attr-defined]
            board.put(7, "A new one", "failed", "broken")
            await ui.shows("A new one")
            assert ui.app.screen.ticket.id == first  # type: ignore[attr-defined]

    drive(work)


def test_columns_tree_graph_and_filter(board: Board):
    fill(board)

    async def work() -> None:
        async with opened(board) as ui:
            await ui.shows("Needs you 2", "the longest chain: 1 → 2 → 5")
            await ui.press("l")
            assert ui.app.screen.ticket.id == 2  # type: ignore[attr-defined]
            await ui.press("h")
            assert ui.app.screen.ticket.id == 4  # type: ignore[attr-defined]
            await ui.press("t")
            await ui.shows("├─", "tree")
            await ui.press("t")
            await ui.shows("Wave 1", "← 2, 3")
            await ui.press("t", "slash", *"log in", "enter")
            await ui.shows("filter: log in", "(1 of 6)", "A page to log in")
            assert "Rate limits" not in ui.text
            await ui.press("slash", "escape")
            await ui.shows("Rate limits")

    drive(work)


def test_keys_of_tickets_ask_and_only_a_yes_acts(board: Board):
    fill(board)
    board.run(2, ended=False, driver="claude")
    keys = (
        (4, "d", "Remove #4", "drop"),
        (2, "s", "Stop #2", "stop"),
        (2, "x", "Interrupt the agent of #2", "interrupt"),
        (2, "c", "Pause #2", "pause_ticket"),
        (6, "r", "", "resume_ticket"),
        (3, "v", "", "review"),
        (3, "m", "Land #3 A page to log in now?", "land"),
        (1, "u", "Revert #1", "undo"),
    )
    # Nothing is done, so that every key meets the same board.
    board.callers.instead = {asked: Acted(tickets=[ticket], message="It was done") for ticket, _, _, asked in keys}

    def was_asked(name: str) -> bool:
        return name in board.callers.asked

    async def work() -> None:
        async with opened(board) as ui:
            await ui.press("t")
            await ui.until(lambda: ui.app.store.graph.value is not None)
            for ticket, key, question, asked in keys:
                ui.rows("#column-0 .tickets").select(str(ticket))
                await ui.press(key)
                if question:
                    await ui.shows(question)
                    await ui.press("n")
                    assert asked not in board.callers.asked
                    await ui.press(key)
                    await ui.until(lambda: isinstance(ui.app.screen, YesNo), question)
                    await ui.press("y")
                await ui.until(partial(was_asked, asked), asked)
                await ui.until(lambda: not ui.app.has_screen_on_top, f"the board after {asked}")

    drive(work)


def test_keys_that_do_not_apply_do_nothing_and_are_not_in_the_footer(board: Board):
    fill(board)

    async def work() -> None:
        async with opened(board, size=(160, 30)) as ui:
            await ui.press("t")
            await ui.until(lambda: ui.app.store.graph.value is not None)
            ui.rows("#column-0 .tickets").select("5")
            await ui.until(lambda: "r retry" not in ui.text and "s stop" in ui.text, "the footer of a queued ticket")
            await ui.press("u", "m", "r")
            assert not isinstance(ui.app.screen, YesNo)
            ui.rows("#column-0 .tickets").select("4")
            await ui.shows("r retry")

    drive(work)


def test_a_ticket_has_its_tabs_and_a_message_goes_to_its_agent(board: Board):
    fill(board)
    run = board.run(2, "I look at the code.\n", ended=False, driver="claude")

    async def work() -> None:
        async with opened(board) as ui:
            ui.app.open_ticket(2)
            await ui.shows("I look at the code.", "#2 The HTTP side")
            board.print(run, "> Edit: app/http.py\n")
            await ui.shows("> Edit: app/http.py")
            pages = ("Make it so.", "changed nothing yet", "Sit down at its agent", "No check has run", "No review yet")
            for words in (*pages, "ticket.moved"):
                await ui.press("tab")
                await ui.shows(words)
            await ui.press("i", *"wait", "enter")
            await ui.until(lambda: "tell" in board.callers.asked)
            assert ui.app.drafts.get("message.2") == "wait", "the agent does not run, so the text is kept"
            await ui.press("escape")
            await ui.shows("columns")

    drive(work)


def test_comments_on_a_change_are_sent_back_as_one_feedback(board: Board):
    fill(board)
    board.callers.instead = {
        "diff": Diff(ticket=3, base="b", head="h", text=DIFF, live=False),
        "bounce": Acted(tickets=[3], message="Ticket 3 goes back."),
    }

    async def work() -> None:
        async with opened(board) as ui:
            ui.app.open_ticket(3, tab="diff")
            await ui.shows("a.py", "+ more = 2")
            await ui.press("G", "c", *"Why 2?", "enter")
            await ui.shows("✎ Why 2?", "b send back")
            await ui.press("b")
            await ui.shows("Send #3 back to its agent with 1 comment?")
            await ui.press("y")
            await ui.until(lambda: "bounce" in board.callers.asked)
            sent = board.callers.sent[board.callers.asked.index("bounce")]["action"]
            assert sent.feedback == "a.py:2\n> more = 2\nWhy 2?"
            await ui.until(lambda: "✎" not in ui.text)
            await ui.press("g", "space")
            await ui.shows("▸ a.py")

    drive(work)


def test_the_history_returns_a_ticket_to_a_moment_after_one_question(board: Board):
    fill(board)
    history = board.service.history(board.cwd, ticket=2)
    history.lines[-1].rewind = "1:7"
    board.callers.instead = {
        "history": history,
        "rewind": Acted(tickets=[2], message="Back at 1:7."),
        "diff": Diff(ticket=2, base="b", head="h", text=DIFF, live=False),
    }

    async def work() -> None:
        async with opened(board) as ui:
            ui.app.open_ticket(2, tab="history")
            await ui.shows("1 moment to return to", "↶")
            await ui.press("G", "enter")
            await ui.shows("#2 at 1:7", "then R returns", "What changed since then", "+ more = 2")
            asked = board.callers.sent[len(board.callers.asked) - 1 - board.callers.asked[::-1].index("diff")]
            assert asked["since"] == "1:7"
            await ui.press("escape", "R")
            await ui.shows("Return #2 to 1:7?")
            await ui.press("y")
            await ui.until(lambda: "rewind" in board.callers.asked)
            ui.app.open_ticket(1, tab="history")
            await ui.shows("it landed, so it returns to no moment")
            await ui.press("G")
            assert "R rewind" not in ui.text

    drive(work)


def test_the_terminal_tab_offers_the_agent_and_a_shell_above_the_last_output(board: Board):
    fill(board)
    board.run(2, "I look at the code.\n", ended=False)

    async def work() -> None:
        async with opened(board) as ui:
            ui.app.open_ticket(2, tab="terminal")
            await ui.shows("o  Sit down at its agent", "The last output", "I look at the code.")
            ui.rows("#terminal").select("attach")
            board.callers.trouble = StateConflict("No agent works on it.")
            await ui.press("enter")
            await ui.until(lambda: "attach" in board.callers.asked)
            board.callers.trouble = None

    drive(work)


def test_the_checks_run_again_on_landed_code(board: Board):
    fill(board)

    async def work() -> None:
        async with opened(board) as ui:
            ui.app.open_ticket(1)
            await ui.shows("It landed.")
            await ui.press("B")
            await ui.shows("Run all checks on the code that #1 Tables for users landed?")
            await ui.press("y")
            await ui.until(lambda: 7 in board.tickets)
            made = board.tickets[7].spec
            assert (made.title, made.after, made.checkpoint) == ("Checks after #1", (1,), True)

    drive(work)


def test_questions_are_answered_with_a_key_in_words_or_all_at_once(board: Board):
    board.put(12, "Fetch", "working")
    for id in (3, 4, 5):
        board.ask(id, words=f"May it fetch {id}?", kind=QuestionKind.ASK)
    board.ask(6, words="Which port?", choices=(), fallback="", kind=QuestionKind.ASK)

    async def work() -> None:
        async with opened(board, "inbox") as ui:
            await ui.shows("May it fetch 3?", "Which port?", "4 questions")
            await ui.press("y")
            await ui.shows("Answer `yes` to question 3 of ticket 12", "Enter  yes")
            await ui.press("enter")
            await ui.until(lambda: board.question(3).settled_at)
            await ui.until(lambda: "May it fetch 3?" not in ui.text or "question 3" in ui.text)
            await ui.until(lambda: len(ui.app.store.inbox.value.questions) == 3)  # type: ignore[union-attr]
            await ui.press("j", "A")
            await ui.shows("Answer 2 questions of the kind ask with `yes`?")
            await ui.press("y")
            await ui.until(lambda: board.question(5).settled_at)
            await ui.until(lambda: len(ui.app.store.inbox.value.questions) == 1)  # type: ignore[union-attr]
            await ui.press("j", "e", *"8080", "enter")
            await ui.until(lambda: board.question(6).settled_at)
            await ui.shows("Nothing waits for you.", "The last 4 answers", "8080")

    drive(work)


def test_the_squad_shows_agents_at_work_and_what_to_do_without_any(board: Board, tmp_path: Path):
    fill(board)

    async def work() -> None:
        async with opened(board, "squad", memory=tmp_path / "tui.json") as ui:
            await ui.shows("No leader", "H hire one", "Rate limits")
            await ui.press("H")
            await ui.shows("Lead this project.")
            await ui.press("escape")
            run = board.run(2, "I look.\n", ended=False)
            await ui.shows("▌ #2 The HTTP side", "▌ I look.")
            before = ui.app.screen.query_one("#left").size.width
            await ui.press("right_square_bracket", "right_square_bracket")
            await ui.until(lambda: ui.app.screen.query_one("#left").size.width > before)
            board.service.hire(HireAgent(task="Lead.", name="boss", cwd=board.cwd))
            await ui.shows("Type to boss; Enter sends")
            ui.app.screen.query_one("#say").focus()
            await ui.press(*"hello", "enter")
            await ui.until(lambda: "tell_agent" in board.callers.asked)
            await ui.shows("you to boss", "  hello")
            await ui.press("shift+tab")
            await ui.shows("boss  idle, only leads")
            leader = board.service.hire(HireAgent(task="Lead.", name="ada", role="leader", cwd=board.cwd))
            await ui.shows("ada  ")
            with board.store.write() as tx:
                turn = runs.start_turn(tx, agents.get(tx, leader.id), "prompt").id
            board.print(turn, "I look at the board.\n")
            await ui.shows("at work", "▌ I look at the board.")
            board.print(turn, "Two tickets are open.\n")
            await ui.shows("▌ Two tickets are open.")
            assert "▌ ada" not in ui.text, "its output is in the conversation, and has no pane of its own"
            board.end_run(turn)
            await ui.until(lambda: "▌ Two tickets are open." not in ui.text)
            board.end_run(run)
        assert '"ui.split": "55"' in (tmp_path / "tui.json").read_text()

    drive(work)


def test_panes_that_are_back_at_once_keep_the_focus(board: Board):
    fill(board)
    board.run(2, "I look.\n", ended=False, driver="claude")

    async def work() -> None:
        async with opened(board, "squad") as ui:
            await ui.shows("▌ #2 The HTTP side", "x interrupt")
            squad, output = ui.app.screen, ui.app.store.output
            assert isinstance(squad, SquadPlace)
            running = output.running
            for shown in ([], running):
                output.running = shown
                squad.renew()
            await ui.settled()
            assert ui.rows("#panes").has_focus
            await ui.shows("x interrupt")

    drive(work)


def test_on_the_squad_an_agent_is_selected_and_interrupted_after_one_question(board: Board):
    fill(board)
    board.put(7, "Another", "working")
    for ticket in (2, 7):
        board.run(ticket, "I look.\n", ended=False, driver="claude")
    leader = board.service.hire(HireAgent(task="Lead.", name="ada", role="leader", cwd=board.cwd))

    async def work() -> None:
        async with opened(board, "squad", size=(140, 40)) as ui:
            await ui.shows("▌ #2 The HTTP side", "▌ #7 Another", "ada", "x interrupt")
            ui.app.screen.query_one("#say").focus()
            await ui.press(*"wait", "shift+down")
            assert ui.rows("#panes").selected == "2", "the first press shows which one is selected"
            await ui.press("shift+down")
            assert ui.rows("#panes").selected == "7"
            await ui.press("x")
            await ui.shows("Interrupt the agent of #7")
            await ui.press("escape", "shift+up", "x")
            await ui.shows("Interrupt the agent of #2")
            await ui.press("y")
            await ui.until(lambda: "interrupt" in board.callers.asked)
            with board.store.write() as tx:
                runs.start_turn(tx, agents.get(tx, leader.id), "prompt")
            await ui.shows("ada  at work")
            for _ in range(3):
                ui.app.screen.query_one("#say").focus()
                await ui.press("escape", "escape")
                assert ui.rows("#panes").has_focus, "Esc leaves the line, and nothing else"
            assert ui.app.drafts.get("talk") == "wait"

    drive(work)


def test_agents_get_messages_are_interrupted_and_fired(board: Board):
    hired = board.service.hire(HireAgent(task="Lead the release.", name="boss", cwd=board.cwd))

    async def work() -> None:
        async with opened(board, "agents") as ui:
            await ui.shows("boss", "Lead the release.")
            await ui.press("i", *"Friday", "enter")
            await ui.shows("Friday")
            await ui.press("shift+tab")
            await ui.shows("only leads", "Legion's own; to give: all")
            await ui.press("d")
            await ui.until(lambda: "only leads" not in ui.rows("#list").rows[0].text)
            await ui.press("a")
            await ui.shows("Approve the plan of boss?")
            await ui.press("n", "F")
            await ui.shows("Fire boss?")
            await ui.press("y")
            await ui.shows("No standing agents")
            assert hired.id not in ui.text

    drive(work)


def test_the_queue_shows_what_lands_and_undoes_what_landed(board: Board):
    fill(board)
    board.callers.instead = {"undo": Acted(tickets=[8], message="Ticket 8 reverts it.")}

    async def work() -> None:
        async with opened(board, "queue") as ui:
            await ui.shows("Waiting 1", "A page to log in", "Landed 1", "Tables for users")
            ui.rows("#body").select("1")
            await ui.press("u")
            await ui.shows("Revert #1 Tables for users?")
            await ui.press("y")
            await ui.until(lambda: "undo" in board.callers.asked)

    drive(work)


def test_usage_by_each_cut(board: Board):
    fill(board)

    async def work() -> None:
        async with opened(board, "usage") as ui:
            await ui.shows("by day", "Limits")
            for cut in ("ticket", "agent", "model", "epic", "day"):
                await ui.press("t")
                await ui.until(lambda cut=cut: ui.app.store.usage[cut].value is not None)  # type: ignore[misc]
            await ui.press("h")
            assert ui.app.screen.cut == "epic"  # type: ignore[attr-defined]

    drive(work)


def test_a_person_who_waits_for_a_conversation_sees_it_at_once_and_gives_up_with_esc(board: Board):
    board.put(2, "Slow", "working")
    run = board.run(2, "In a long call.\n", ended=False)
    with board.store.read() as tx:
        folder = run_dir(board.context, runs.get(tx, run))
    program = Program(argv=("agent",), cwd=folder, env={})
    write_spec(folder, RunSpec(run=folder.name, program=program, driver="claude", sandbox=None))

    async def work() -> None:
        async with opened(board, "squad") as ui:
            await ui.press("o")
            await ui.shows("Waiting for a safe moment of the agent of #2", "Esc  give up")
            await ui.until(lambda: asked_for(board) is not None, "the request")
            await ui.press("o", "s", "q")
            await ui.shows("Waiting for a safe moment of the agent of #2")
            await ui.press("escape")
            await ui.until(lambda: "Waiting" not in ui.text and asked_for(board) is None, "the place below")

    drive(work)
    assert (board.callers.asked.count("attach"), board.callers.asked.count("give_back")) == (1, 1)


def asked_for(board: Board) -> Takeover | None:
    with board.store.read() as tx:
        return takeovers.of_ticket(tx, 2)
