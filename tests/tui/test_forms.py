"""Forms and the menu, driven by keys."""

from __future__ import annotations

import threading
from copy import copy
from pathlib import Path

from legion.tui.screens.forms import Form
from legion.tui.screens.menu import Menu
from legion.wire.errors import StateConflict
from legion.wire.projects import Done, ProjectAdded
from legion.wire.providers import Models, ModelsOf, ProviderLine, Providers
from tests.support.board import Board
from tests.tui.driving import PATIENCE, drive, opened


def test_a_ticket_is_written_in_a_form_and_what_was_typed_is_kept(board: Board, tmp_path: Path):
    memory = tmp_path / "tui.json"

    async def work() -> None:
        async with opened(board, memory=memory) as ui:
            await ui.shows("The board is empty.")
            await ui.press("n", *"Login", "tab", *"A page", "escape")
            await ui.until(lambda: not isinstance(ui.app.screen, Form))
        async with opened(board, memory=memory) as ui:
            await ui.press("n")
            await ui.shows("New ticket", "Login", "A page")
            await ui.press("tab", "tab", "tab", "tab", *"x")
            await ui.shows("after must be numbers of tickets")
            await ui.press("ctrl+s")
            assert isinstance(ui.app.screen, Form)
            await ui.press("backspace", *"99", "ctrl+s")
            await ui.shows("99")
            assert board.tickets == {}
            await ui.press("backspace", "backspace", "ctrl+s")
            await ui.until(lambda: 1 in board.tickets)
            assert board.tickets[1].spec.title == "Login"
            assert board.tickets[1].spec.text == "A page"
            await ui.shows("Login", "Waiting 1")
            assert ui.app.drafts.of("form.ticket.") == {}

    drive(work)


def test_the_label_of_the_focused_field_is_always_in_view(board: Board):
    async def work() -> None:
        async with opened(board, size=(80, 24)) as ui:
            for key, labels in (
                ("n", ["title:", "text:", "context:", "criteria:"]),
                ("H", ["task:", "name:", "role:"]),
            ):
                await ui.press(key)
                for label in labels:
                    await ui.shows(f"│ {label}")
                    await ui.press("tab")
                await ui.press("escape")

    drive(work)


def test_a_form_shows_its_own_keys_alone_and_a_kept_draft_is_continued_not_replaced(board: Board):
    board.put(1, "First", "failed", "gave up")

    async def work() -> None:
        async with opened(board, size=(120, 30)) as ui:
            await ui.shows("Space mark", "r retry")
            await ui.press("n", *"Login")
            await ui.shows("Ctrl+S send")
            await ui.until(lambda: "Space mark" not in ui.text and "r retry" not in ui.text, "the form's keys alone")
            await ui.press("escape")
            await ui.shows("Space mark", "r retry")
            await ui.press("n", *"!")
            assert ui.app.drafts.get("form.ticket.title") == "Login!"
            await ui.press("ctrl+z", "ctrl+z")
            assert ui.app.drafts.get("form.ticket.title") == "Login", "what was there before cannot be undone away"

    drive(work)


def test_without_a_project_one_is_offered_for_this_folder(board: Board, tmp_path: Path):
    elsewhere = copy(board)
    elsewhere.cwd = str(tmp_path)
    made = ProjectAdded(
        name="new", root=str(tmp_path), branch="main", hub="", worktrees="", config_file="legion.toml", config_text="",
        wrote_config=True, trusted=True, dry_run=False,
    )  # fmt: skip
    board.callers.instead = {"add_project": made}

    async def work() -> None:
        async with opened(elsewhere) as ui:
            await ui.press("I")
            await ui.shows("Make a project of")
            await ui.press("y")
            await ui.until(lambda: "add_project" in board.callers.asked)
        async with opened(board) as ui:
            await ui.press("I")
            assert "Make a project of" not in ui.text

    drive(work)


def test_retry_with_feedback(board: Board):
    board.put(1, "First", "failed", "gave up")

    async def work() -> None:
        async with opened(board) as ui:
            await ui.shows("First")
            await ui.press("r", *"Use the copy")
            await ui.shows("Make it so.")
            await ui.press("tab", "tab", *"It is old.", "ctrl+s")
            await ui.until(lambda: board.tickets[1].state.value == "queued")
            assert "Use the copy" in board.tickets[1].feedback
            assert board.tickets[1].spec.context == "It is old."
            assert board.tickets[1].spec.text == "Make it so.", "a text that was not touched stays"

    drive(work)


def test_an_agent_is_hired_and_a_missing_task_is_explained(board: Board):
    async def work() -> None:
        async with opened(board) as ui:
            await ui.press("H", "ctrl+s")
            await ui.shows("Write the task")
            await ui.press(*"Lead.", "tab", *"boss", "ctrl+s")
            await ui.until(lambda: not isinstance(ui.app.screen, Form))
            assert [one.name for one in board.service.agents().agents] == ["boss"]

    drive(work)


def test_working_together_starts_with_a_profile_a_branch_and_a_prompt(board: Board):
    async def work() -> None:
        async with opened(board) as ui:
            await ui.press("w", "ctrl+s")
            await ui.shows("Write a name")
            await ui.press(*"Tidy", "tab", *"Begin", "tab", *"mine", "tab", *"half-done", "ctrl+s")
            await ui.until(lambda: "new_by_hand" in board.callers.asked)
            wanted = board.callers.sent[board.callers.asked.index("new_by_hand")]["wanted"]
            assert (wanted.name, wanted.prompt, wanted.profile, wanted.branch) == ("Tidy", "Begin", "mine", "half-done")
            await ui.shows("mine")
            assert isinstance(ui.app.screen, Form), "the daemon does not know this profile, so what was typed is kept"

    drive(work)


def test_the_menu_finds_actions_and_lists(board: Board):
    board.put(1, "First", "done")

    async def work() -> None:
        async with opened(board) as ui:
            await ui.shows("First")
            await ui.press("ctrl+p", *"revert")
            await ui.shows("undo", "Revert a landed ticket")
            await ui.press("enter")
            await ui.shows("Revert #1 First?")
            await ui.press("n")
            for name, words in (
                ("roles", "engineer"), ("teams", "qa_team"), ("settings in", "agents.parallel"), ("providers", "add"),
                ("answers for", "Models of your providers"), ("worktrees of", "trash"),
            ):  # fmt: skip
                await ui.press("ctrl+p", *name, "enter")
                await ui.shows(words)
                await ui.press("escape")
            await ui.press("ctrl+p", *"zzz")
            await ui.shows("Nothing has these letters.")
            await ui.press("escape")
            assert not isinstance(ui.app.screen, Menu)

    drive(work)


def test_models_that_arrive_while_they_are_chosen_are_offered(board: Board):
    arrive = threading.Event()

    class Late(dict[str, object]):
        def __getitem__(self, name: str) -> object:
            assert name != "models" or arrive.wait(PATIENCE)
            return super().__getitem__(name)

    provider = ProviderLine(name="house", url="", auth="", key="", found=True, default=True, limit=None)
    board.callers.instead = Late(
        models=Models(providers=[ModelsOf(provider="house", models=["opus-9"])]),
        providers=Providers(file="", providers=[provider]),
        set_route=Done(message="Set."),
    )

    async def work() -> None:
        async with opened(board) as ui:
            ui.app.open_catalog("models")
            await ui.shows("Asking the providers.")
            await ui.press("enter", *"opus")
            await ui.shows("Nothing has these letters.")
            arrive.set()
            await ui.shows("house/opus-9")
            await ui.press("enter")
            await ui.until(lambda: "set_route" in board.callers.asked)
            sent = board.callers.sent[board.callers.asked.index("set_route")]
            assert sent["wanted"].to == ["house/opus-9"]

    drive(work)


def test_a_branch_is_chosen_from_those_that_there_are(board: Board):
    board.repository.git("branch", "feature/login")

    async def work() -> None:
        async with opened(board) as ui:
            await ui.press("w")
            await ui.shows("name:")
            assert "choose" not in ui.text, "any name will do"
            await ui.press("tab", "tab", "tab")
            await ui.shows("Ctrl+O choose")
            await ui.press("ctrl+o", *"log")
            await ui.shows("feature/login")
            await ui.press("enter")
            await ui.until(lambda: ui.app.drafts.of("form.by-hand.") == {"branch": "feature/login"})
            board.callers.trouble = StateConflict("Not now.")
            await ui.press("ctrl+o")
            await ui.shows("There is none.")
            await ui.press("escape")
            await ui.shows("Not now.", "feature/login")

    drive(work)


def test_workers_and_retries_are_changed_in_the_menu(board: Board):
    async def work() -> None:
        async with opened(board) as ui:
            ui.app.open_catalog("workers")
            await ui.shows("workers", "legion.toml", "0 at work now")
            await ui.press("enter")
            await ui.shows("Workers and retries")
            await ui.press("backspace", *"x")
            await ui.shows("workers must be a whole number")
            await ui.press("backspace", *"7", "ctrl+s")
            await ui.until(lambda: board.service.numbers(board.cwd).workers == 7)
            assert not board.service.numbers(board.cwd).retries_set, "only what was changed is set by the person"
            await ui.shows("set by you")

    drive(work)


def test_sessions_are_started_switched_and_completed_in_the_menu(board: Board):
    def sessions() -> dict[str, bool]:
        return {one.name: one.acting for one in board.service.sessions(board.cwd).sessions}

    async def work() -> None:
        async with opened(board) as ui:
            ui.app.open_catalog("sessions")
            await ui.shows("● default", "Your checkout is on main")
            await ui.press("a", *"change", "ctrl+s")
            await ui.until(lambda: sessions() == {"default": False, "change": True})
            await ui.shows("● change")
            await ui.press("enter")
            await ui.until(lambda: sessions() == {"default": True, "change": False})
            await ui.shows("The board is empty.")
            ui.app.open_catalog("sessions")
            await ui.shows("● default")
            await ui.press("j", "c")
            await ui.shows("Collect what landed in change")
            await ui.press("y")
            await ui.until(lambda: sessions() == {"default": True})
            await ui.shows("ended ")
            ui.rows("#body").select("ended change")
            await ui.press("x")
            await ui.until(lambda: len(board.service.sessions(board.cwd, all=True).sessions) == 1)

    drive(work)
