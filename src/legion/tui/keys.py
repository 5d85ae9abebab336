"""The key map as data: context, action, keys and what they do. Footer, help, menu and bindings are made from it.

Keys are named as Textual names them. A line `board.retry = x` in the person's settings rebinds one; `unbind` takes no
key at all. Where two actions want one key, the context decides: the one of the focused place comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum


class KeyContext(Enum):
    """The places in which keys have a meaning."""

    EVERYWHERE = "everywhere"
    LIST = "list"
    TICKETS = "tickets"
    """A ticket is selected: on the board, in the squad, on its own screen."""
    BOARD = "board"
    SQUAD = "squad"
    TICKET = "ticket"
    DIFF = "diff"
    HISTORY = "history"
    INBOX = "inbox"
    AGENTS = "agents"
    QUEUE = "queue"
    USAGE = "usage"
    PLANS = "plans"
    MODELS = "models"
    MACHINES = "machines"
    FORM = "form"


@dataclass(frozen=True, kw_only=True)
class Key:
    context: KeyContext
    action: str
    keys: tuple[str, ...]
    label: str
    """One or two words, for the footer."""
    help: str
    footer: bool = False
    priority: bool = False
    """Works also while text is typed."""

    @property
    def id(self) -> str:
        return f"{self.context.value}.{self.action}"


def _key(context: KeyContext, action: str, keys: str, label: str, help: str, **more: bool) -> Key:
    return Key(context=context, action=action, keys=tuple(keys.split()), label=label, help=help, **more)


def _main(context: KeyContext, action: str, keys: str, label: str, help: str, **more: bool) -> Key:
    """A key that the footer shows."""
    return _key(context, action, keys, label, help, footer=True, **more)


_E, _L, _T = KeyContext.EVERYWHERE, KeyContext.LIST, KeyContext.TICKETS
KEYS: tuple[Key, ...] = (
    _main(_E, "menu", "ctrl+p", "menu", "Every action, by name; type to search.", priority=True),
    _main(_E, "help", "question_mark f1", "help", "The keys of this place."),
    _main(_E, "quit", "q ctrl+q", "quit", "Leave. Agents and daemon continue."),
    _key(_E, "suspend_process", "ctrl+z", "suspend", "To your shell; `fg` comes back. In a line of text: undo."),
    _key(_E, "squad", "1", "squad", "Agents at work, and the board next to them."),
    _key(_E, "board", "2 ctrl+t", "board", "All tickets."),
    _key(_E, "inbox", "3", "inbox", "Questions that wait for you."),
    _key(_E, "agents", "4", "agents", "Standing agents and their mail."),
    _key(_E, "queue", "5", "queue", "The merge queue."),
    _key(_E, "usage", "6", "usage", "Spending and limits."),
    _key(_E, "plans", "7", "plans", "Plans: what a planner proposes for a goal."),
    _main(_E, "go_back", "escape", "back", "To the place before; closes a question without an answer."),
    _key(_E, "next_pane", "tab", "next pane", "To the next pane, or the next tab of a ticket."),
    _key(_E, "previous_pane", "shift+tab", "previous pane", "To the pane or tab before."),
    _key(_E, "refresh", "R", "refresh", "Read everything again. Not needed: events do it."),
    _main(_E, "new_ticket", "n", "new ticket", "Write a ticket."),
    _key(_E, "new_ticket_full", "N", "new, all fields", "Write a ticket with every field: model, team, budget."),
    _key(_E, "new_plan", "plus", "plan a goal", "Have a planner propose tickets for a goal."),
    _key(_E, "new_by_hand", "w", "work together", "Open an agent in a terminal, and work with it."),
    _key(_E, "hire", "H", "hire", "Hire a standing agent."),
    _key(_E, "collect", "C", "collect", "Bring landed changes into your branch."),
    _key(_E, "pause_project", "P", "pause", "Start nothing new; again: resume."),
    _key(_E, "clear_ended", "D", "clear ended", "Remove all ended tickets from the board."),
    _key(_E, "start_daemon", "U", "start Legion", "Start the daemon where none runs."),
    _key(_E, "init", "I", "make a project", "Make a project of the git repository that you are in."),
    _key(_E, "light", "ctrl+l", "light or dark", "Change between dark and light colours."),
    _key(_L, "down", "j down", "down", "To the next line."),
    _key(_L, "up", "k up", "up", "To the line before."),
    _key(_L, "first", "g home", "first", "To the first line."),
    _key(_L, "last", "G end", "last", "To the last line; live output is followed again."),
    _key(_L, "page_down", "pagedown ctrl+d", "page down", "A page down."),
    _key(_L, "page_up", "pageup ctrl+u", "page up", "A page up."),
    _key(_L, "scroll_down", "shift+down", "scroll down", "Scroll without moving the selection."),
    _key(_L, "scroll_up", "shift+up", "scroll up", "Scroll without moving the selection."),
    _main(_L, "choose", "enter", "open", "Open what is selected."),
    _key(_T, "attach", "o", "attach", "Sit down at its agent's terminal, or take over; Ctrl+Q leaves."),
    _key(_T, "open", "O", "open", "Its screen: live output, change, terminal, receipts, reviews, history."),
    _key(_T, "shell", "e", "shell", "A shell in its worktree; exit leaves."),
    _key(_T, "checkout", "b", "branch", "Its work as a new branch in your repository; copies the name."),
    _key(_T, "push", "p", "push", "Push its work to your remote, as a new branch."),
    _key(_T, "submit", "S", "submit", "Submit the change of a ticket that you work on yourself."),
    _main(_T, "message", "i", "message", "Send one line to its agent, without attaching."),
    _main(_T, "diff", "f", "diff", "Its change."),
    _main(_T, "retry", "r", "retry", "Try an ended ticket again, with feedback; resume a paused one."),
    _main(_T, "stop", "s", "stop", "Stop it; its work is kept."),
    _main(_T, "interrupt", "x", "interrupt", "Interrupt its agent; the ticket is paused. Asks once."),
    _key(_T, "pause", "c", "check out", "Save its work, pause it, make it a branch and copy the name."),
    _key(_T, "drop", "d", "drop", "Remove it from the board."),
    _key(_T, "review", "v", "review", "Have its change reviewed."),
    _key(_T, "check", "B", "run checks", "Run all checks on the code that it landed."),
    _main(_T, "land", "m", "land", "Land its change, where it waits for you. Asks once."),
    _key(_T, "undo", "u", "undo", "Revert a landed ticket by a new ticket."),
    _main(_T, "mark", "space", "mark", "Mark it: stop, retry, drop and others act on all that are marked."),
    _key(_T, "copy", "y", "copy", "Copy its number, worktree or commit."),
    _main(KeyContext.BOARD, "filter", "slash", "filter", "Show only some: words, #12, state:, epic:, label:, agent:."),
    _main(KeyContext.BOARD, "mode", "t", "columns, tree, graph", "The next form of the board."),
    _key(KeyContext.BOARD, "left", "h left alt+left", "left", "To the column on the left."),
    _key(KeyContext.BOARD, "right", "l right alt+right", "right", "To the column on the right."),
    _key(KeyContext.SQUAD, "next_agent", "shift+down", "next agent", "Select the next agent at work.", priority=True),
    _key(KeyContext.SQUAD, "previous_agent", "shift+up", "agent before", "Select the agent before.", priority=True),
    _main(KeyContext.SQUAD, "delegate", "shift+tab", "delegate", "Your leader only leads; again: it also reads."),
    _key(KeyContext.SQUAD, "narrower", "left_square_bracket ctrl+left", "narrower", "Move the divider to the left."),
    _key(KeyContext.SQUAD, "wider", "right_square_bracket ctrl+right", "wider", "Move the divider to the right."),
    _key(KeyContext.TICKET, "next_tab", "tab l right", "next tab", "To the next tab."),
    _key(KeyContext.TICKET, "previous_tab", "shift+tab h left", "previous tab", "To the tab before."),
    _main(KeyContext.DIFF, "comment", "c", "comment", "Write a comment on this line."),
    _main(KeyContext.DIFF, "send_back", "b", "send back", "Send the change back with all comments."),
    _main(KeyContext.DIFF, "fold", "space", "fold", "Fold or unfold this file."),
    _key(KeyContext.DIFF, "next_file", "J right_square_bracket", "next file", "To the next file."),
    _key(KeyContext.DIFF, "previous_file", "K left_square_bracket", "previous file", "To the file before."),
    _main(KeyContext.HISTORY, "rewind", "R", "rewind", "Return the ticket to this moment."),
    _main(KeyContext.INBOX, "yes", "y", "yes", "Answer with yes, or the first choice; asks once."),
    _main(KeyContext.INBOX, "no", "n", "no", "Answer with no, or the second choice; asks once."),
    _main(KeyContext.INBOX, "answer", "e", "in words", "Choose an answer, or write one."),
    _main(KeyContext.INBOX, "yes_to_all", "A", "yes to all alike", "Answer all questions of this kind with yes."),
    _main(KeyContext.INBOX, "diff", "f", "diff", "Its ticket's change."),
    _main(KeyContext.INBOX, "open_ticket", "o", "its ticket", "Open the ticket that asks."),
    _main(KeyContext.AGENTS, "tell", "i", "message", "Send it a message."),
    _main(KeyContext.AGENTS, "interrupt_agent", "x", "interrupt", "Interrupt it; with a message it continues."),
    _main(KeyContext.AGENTS, "fire", "F", "fire", "Fire it; its work is kept."),
    _main(KeyContext.AGENTS, "delegate", "shift+tab d", "delegate", "It only leads, without tools; again: undone."),
    _key(KeyContext.AGENTS, "approve", "a", "approve plan", "Approve the plan that it proposed."),
    _key(KeyContext.AGENTS, "reject", "e", "reject plan", "Send its plan back, with a reason."),
    _main(KeyContext.QUEUE, "undo_landed", "u", "undo", "Revert the landed ticket that is selected."),
    _main(KeyContext.USAGE, "next_cut", "t l right", "group by", "The next grouping: day, ticket, agent, model, epic."),
    _key(KeyContext.USAGE, "previous_cut", "h left", "group before", "The grouping before."),
    _main(KeyContext.PLANS, "approve", "a", "approve", "Approve the marked tickets, or all; asks once."),
    _main(KeyContext.PLANS, "mark", "space", "mark", "Mark a ticket of the plan, to approve only some."),
    _main(KeyContext.PLANS, "reject", "b", "send back", "Send the plan back to its planner, with a reason."),
    _main(KeyContext.PLANS, "edit", "E", "edit", "Edit the plan in your editor; it is checked again."),
    _main(KeyContext.PLANS, "retry_plan", "r", "retry", "Start the planner of a failed plan again."),
    _main(KeyContext.PLANS, "drop_plan", "d", "drop", "End the plan; its approved tickets stay."),
    _main(KeyContext.MODELS, "add", "a n", "add", "Add a provider, a route or a session, or write a new team or role."),
    _main(KeyContext.MODELS, "test", "t", "test", "Send one small request to the selected provider."),
    _main(KeyContext.MODELS, "remove", "d", "remove", "Remove what is selected."),
    _main(KeyContext.MODELS, "complete", "c", "complete", "Collect what a session landed, and end the session."),
    _main(KeyContext.MODELS, "forget", "x", "forget", "Remove an ended session from the list."),
    _main(KeyContext.MACHINES, "update", "u r", "restart, update", "Its worker starts again as the installed release."),
    _main(KeyContext.MACHINES, "pause_machine", "p", "pause, resume", "Start nothing new there; again: resume."),
    _main(KeyContext.MACHINES, "clean", "c", "clean", "Remove ended tickets; their worktrees go to the trash."),
    _main(KeyContext.MACHINES, "drain_machine", "D", "drain", "Start nothing new there, since it is to be removed."),
    _main(KeyContext.MACHINES, "remove_machine", "d", "remove", "Remove the machine; its token opens nothing then."),
    _main(KeyContext.FORM, "send", "ctrl+s", "send", "Send the form."),
    _main(KeyContext.FORM, "choose", "ctrl+o", "choose", "Choose from what there is; typing searches."),
    _key(KeyContext.FORM, "next_field", "tab", "next field", "To the next field.", priority=True),
    _key(KeyContext.FORM, "previous_field", "shift+tab", "field before", "To the field before.", priority=True),
    _main(KeyContext.FORM, "leave", "escape", "leave", "Leave the form; what you typed is kept."),
)  # fmt: skip
BY_ID = {key.id: key for key in KEYS}

_SHOWN = {
    "question_mark": "?", "slash": "/", "escape": "Esc", "enter": "Enter", "space": "Space", "tab": "Tab",
    "shift+tab": "Shift+Tab", "left_square_bracket": "[", "right_square_bracket": "]", "pageup": "PgUp",
    "pagedown": "PgDn", "up": "↑", "down": "↓", "left": "←", "right": "→", "home": "Home", "end": "End", "f1": "F1",
    "plus": "+",
}  # fmt: skip
_BY_SIGN = {shown: name for name, shown in _SHOWN.items()}
UNBIND = "unbind"


def shown_key(key: str) -> str:
    """A key as people write it: Ctrl+P, ?, R."""
    if key in _SHOWN:
        return _SHOWN[key]
    *modifiers, last = key.split("+")
    name = _SHOWN.get(last, last.upper() if modifiers else last)
    return "+".join([*(part.capitalize() for part in modifiers), name])


@dataclass(frozen=True, kw_only=True)
class KeyMap:
    """The keys in force: the defaults, and what the person rebound."""

    keys: tuple[Key, ...] = KEYS
    faults: tuple[str, ...] = ()
    """What is wrong with lines of the settings, for a notice."""

    @staticmethod
    def with_changes(lines: Iterable[str]) -> KeyMap:
        """`board.retry = x y` for each line; a line that makes no sense is left out and reported."""
        changed: dict[str, tuple[str, ...]] = {}
        faults: list[str] = []
        for line in lines:
            id, equals, words = (part.strip() for part in line.partition("="))
            keys = tuple(_BY_SIGN.get(word, word) for word in words.split())
            if not equals or not keys:
                faults.append(f"`{line}` is no line like board.filter = slash")
            elif id not in BY_ID:
                faults.append(f"there is no action `{id}`; the help lists all")
            else:
                changed[id] = () if keys == (UNBIND,) else keys
        replaced = tuple(Key(**{**vars(key), "keys": changed[key.id]}) if key.id in changed else key for key in KEYS)
        return KeyMap(keys=replaced, faults=tuple(faults))

    def of(self, context: KeyContext) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if key.context is context)

    def shown(self) -> Mapping[str, str]:
        """The first key of each action, by the action's name, as people write it."""
        return {key.action: shown_key(key.keys[0]) for key in reversed(self.keys) if key.keys}
