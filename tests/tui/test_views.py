"""Views: pure functions from the daemon's answers to rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from legion.client.text import board, inbox, models, queue, usage
from legion.client.text.rows import Row, definitions, flow, paragraph, table
from legion.client.text.terminal import Cell, Colour, width
from legion.tui.keys import KeyContext, KeyMap
from legion.tui.link.connection import Phase
from legion.tui.store import KEPT_LINES, Tail
from legion.tui.views import diff, squad
from legion.tui.views.diff import CommentPlace, DiffKind
from legion.tui.views.status_line import help_rows, next_step, status_line, top_line
from legion.wire.agents import AgentList
from legion.wire.board import Status
from legion.wire.history import RunningLine
from legion.wire.mail import Inbox, MessageLine, QuestionLine, WaitingLine
from legion.wire.providers import Models, ModelsOf, ProviderLine, Providers, RouteLine, Routes
from legion.wire.teams import RoleLine, Roles
from legion.wire.tickets import TicketLine
from tests.cli.pictured import Pictured

KEYS = {
    name: name.upper()
    for name in (
        "inbox",
        "retry",
        "collect",
        "pause_project",
        "new_ticket",
        "start_daemon",
        "hire",
        "yes",
        "no",
        "answer",
    )
}


def a_board() -> Pictured:
    made = Pictured()
    made.put(1, "Tables for users", "done", epic="auth")
    made.put(2, "The HTTP side", "working", after=[1], labels=["api"], team="qa_team", agent="claude opus")
    made.put(3, "A page to log in", "landing", after=[1], doing="in a batch of 4")
    made.put(4, "Rate limits", "failed", after=[1], reason="gave up")
    made.put(5, "End to end", "queued", after=[2, 3], doing="waits for 2, 3", epic="auth")
    return made


def texts(rows: list[Row]) -> list[str]:
    return [row.text for row in rows]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("", [1, 2, 3, 4, 5]),
        ("page", [3]),
        ("#2", [2]),
        ("state:failed", [4]),
        ("epic:auth", [1, 5]),
        ("epic: END", [5]),
        ("label:api", [2]),
        ("team:qa", [2]),
        ("agent:opus http", [2]),
        ("gave up", [4]),
        ("nothing at all", []),
    ],
)
def test_a_filter_keeps_tickets_that_have_all_its_words(words: str, ids: list[int]):
    assert [one.id for one in board.shown(a_board().tickets.values(), words)] == ids


@pytest.mark.parametrize(
    ("columns", "titles"),
    [
        (60, [""]),
        (80, ["Needs you 1", "At work 2", "Waiting 1", "Ended 1"]),
        (200, ["Needs you 1", "At work 2", "Waiting 1", "Ended 1"]),
    ],
)
def test_the_width_decides_about_columns(columns: int, titles: list[str]):
    made = board.columns(list(a_board().tickets.values()), columns)
    assert [column.title for column in made] == titles
    assert sum(len(column.tickets) for column in made) == 5


@pytest.mark.parametrize("columns", [19, 40, 60, 80, 120])
def test_no_row_is_wider_than_its_place(columns: int):
    graph = a_board().graph()
    long = replace(graph.tickets[1], title="漢字 and a very long title " * 10, doing="does " * 50)
    graph = replace(graph, tickets=[long if one.id == 2 else one for one in graph.tickets])
    for rows in (
        board.cards(graph.tickets, columns, [1]),
        board.listed(graph.tickets, columns),
        board.tree(graph, columns, ""),
        board.wave_cards(graph.tickets, columns, [2]),
        [status_line(a_board().status(), None, columns)],
        [top_line([("1", "squad"), ("2", "board")], "board", Phase.LIVE, columns)],
    ):
        assert max(width(row.text) for row in rows) <= columns


def test_the_tree_and_the_waves_follow_the_dependencies():
    graph = a_board().graph()
    lines = texts(board.tree(graph, 100, ""))
    assert [line.split("#")[1][0] for line in lines] == ["1", "2", "5", "3", "4"]
    assert lines[1].startswith("├─ ")
    assert [[one.id for one in wave.tickets] for wave in board.waves(graph, "")] == [[1], [2, 3, 4], [5]]
    marked = board.chain_line(graph)
    assert marked is not None
    assert "longest chain: 1 → 2 → 5" in marked.text


def test_the_next_step_names_the_key():
    empty = replace(a_board().status(), tickets=[], counts={}, project=None, projects=a_board().status().projects)
    cases: list[tuple[Status | None, Phase, str, str]] = [
        (None, Phase.GONE, "Legion is not running.", "START_DAEMON starts it"),
        (a_board().status(), Phase.SLOW, "", "takes its time"),
        (replace(a_board().status(), questions=2), Phase.LIVE, "", "INBOX opens the inbox"),
        (a_board().status(), Phase.LIVE, "", "Select #4: Enter shows why, RETRY tries again"),
        (replace(a_board().status(), tickets=[]), Phase.LIVE, "", "COLLECT brings them into main"),
        (empty, Phase.LIVE, "", "NEW_TICKET writes the first ticket"),
    ]
    for status, phase, trouble, words in cases:
        step = next_step(status, phase, trouble, KEYS)
        assert step is not None
        assert words in step.text


DIFF = """\
diff --git a/app/login.py b/app/login.py
index 1..2 100644
--- a/app/login.py
+++ b/app/login.py
@@ -1,3 +1,4 @@ def start():
 import os
-OLD = 1
+NEW = "one"
+MORE = 2
 end
diff --git a/old.bin b/old.bin
deleted file mode 100644
Binary files a/old.bin and /dev/null differ
"""


def test_a_diff_is_read_into_files_hunks_and_numbered_lines():
    login, binary = diff.parse(DIFF)
    assert (login.path, login.added, login.removed) == ("app/login.py", 2, 1)
    assert [(line.kind.value, line.old, line.new) for line in login.hunks[0].lines] == [
        (" ", 1, 1), ("-", 2, None), ("+", None, 2), ("+", None, 3), (" ", 3, 4),
    ]  # fmt: skip
    assert binary.notes == ("deleted file mode 100644", "Binary files a/old.bin and /dev/null differ")


def test_a_change_is_one_column_or_side_by_side_by_width():
    files = diff.parse(DIFF)
    narrow, wide = texts(diff.rows(files, 100, (), {})), texts(diff.rows(files, 140, (), {}))
    assert "    2      - OLD = 1" in narrow
    assert any("- OLD = 1" in line and '+ NEW = "one"' in line for line in wide)
    assert len(wide) < len(narrow)
    both = next(row for row in diff.rows(files, 140, (), {}) if "- OLD = 1" in row.text)
    assert both.tint is Colour.NONE, "a removed line is not tinted as the added one next to it"


def test_a_folded_file_is_its_head_alone():
    rows = diff.rows(diff.parse(DIFF), 100, ("app/login.py", "old.bin"), {})
    assert texts(rows) == ["▸ app/login.py  +2 -1", "▸ old.bin  +0 -0"]


@pytest.mark.parametrize("columns", [100, 140])
def test_comments_stand_below_their_lines_and_become_one_feedback(columns: int):
    files = diff.parse(DIFF)
    comments = {
        CommentPlace("app/login.py", DiffKind.ADDED, 3).key: "Why 2?",
        CommentPlace("app/login.py", DiffKind.REMOVED, 2).key: "Keep this.",
    }
    shown = "\n".join(texts(diff.rows(files, columns, (), comments)))
    assert "✎ Why 2?" in shown
    assert "✎ Keep this." in shown
    assert "2 commented" in shown
    assert diff.feedback(comments, files) == (
        "app/login.py:2 (removed)\n> OLD = 1\nKeep this.\n\napp/login.py:3\n> MORE = 2\nWhy 2?"
    )


@pytest.mark.parametrize("key", ["file app/x.py", "", "+x y", "?3 a", "+3"])
def test_only_lines_can_be_commented(key: str):
    assert CommentPlace.of(key) is None


def test_code_has_the_colours_of_its_language():
    (row,) = [row for row in diff.rows(diff.parse(DIFF), 100, (), {}) if "NEW" in row.text]
    assert row.tint is Colour.GREEN
    assert Cell("one", Colour.YELLOW) in row.cells


def running(run: int, ticket: int | None, **more: object) -> RunningLine:
    return replace(RunningLine(run=run, ticket=ticket, agent="", name="", started_at=100.0), **more)  # type: ignore[arg-type]


def test_panes_share_the_height_and_show_the_last_lines():
    tickets: dict[int, TicketLine] = a_board().tickets
    lines = [f"line {number}" for number in range(50)]
    rows = squad.pane_rows([running(1, 2), running(2, 3)], {1: lines, 2: []}, tickets, width=60, height=20, now=160.0)
    assert [row.key for row in rows] == ["2"] * 10 + ["3"] * 2
    assert rows[0].text.startswith("▌ #2 The HTTP side  at work for 1m 00s")
    assert rows[9].text == "▌ line 49"
    assert rows[11].text == "▌ it has printed nothing yet"


def test_thirty_agents_have_thirty_panes_and_those_that_ask_come_first():
    tickets: dict[int, TicketLine] = a_board().tickets
    tickets[5].question = 7
    rows = squad.pane_rows([running(n, n) for n in range(1, 31)], {}, tickets, width=40, height=20, now=0.0)
    assert len({row.key for row in rows} - {""}) == 30
    assert rows[0].text == "30 agents at work; 24 more below"
    assert rows[1].key == "5"


def test_reasons_are_aligned_and_a_question_names_its_key_and_no_command():
    made = a_board()
    made.put(6, "Wait", "parked", doing="asks you: `legion answer 4 land`", reason="changes ci.yml without leave")
    made.tickets[6].question = 4
    rows = texts(board.listed(made.tickets.values(), 90, keys={"inbox": "3"}))
    assert rows[:3] == [
        "Needs you 2",
        "✗  #4  Rate limits  gave up",
        "‖  #6  Wait         asks: changes ci.yml without leave (3 answers)",
    ]


def test_a_notice_of_legion_is_not_the_persons_own_message():
    def letter(kind: str) -> MessageLine:
        return MessageLine(
            number=1, id="m", sender="root", sender_name="you", recipient="a", recipient_name="ada", kind=kind,
            text="The board needs you.", sent_at=0.0, delivery="heard", heard_at=None, about="",
        )  # fmt: skip

    assert squad._letter(letter("tell"), 60)[1].text.startswith("you to ada")
    assert squad._letter(letter("notice"), 60)[1].text.startswith("Legion to ada")


def test_a_tail_keeps_the_last_lines_and_cleans_complete_ones():
    tail = Tail()
    tail.add("one\x1b[3")
    tail.add("1mred\x1b[0m\ntwo")
    assert tail.last(9) == ["onered", "two"]
    tail.add("\n" * (KEPT_LINES + 5))
    assert len(tail.lines) == KEPT_LINES


def question(id: int, **more: object) -> QuestionLine:
    made = QuestionLine(
        id=id,
        project="shop",
        ticket=2,
        title="HTTP",
        words="May it?",
        asked_at=0.0,
        deadline=500.0,
        choices=["yes", "no"],
    )
    return replace(made, **more)  # type: ignore[arg-type]


def waiting(one: QuestionLine | None = None, **more: object) -> WaitingLine:
    asked = {"kind": "question", "id": one.id, "title": one.title, "words": one.words} if one else {}
    facts = {"kind": "failed", "id": 7, "title": "Mend", "words": "gave up", "since": 200.0, "holds_up": 1}
    return WaitingLine(**{"project": "shop", "root": "/shop", **facts, **asked, **more})  # type: ignore[arg-type]


def test_everything_that_waits_is_one_list_in_the_order_of_the_answer_with_what_decides_it():
    found = Inbox(
        questions=[question(3, default="no")],
        waiting=[
            waiting(holds_up=4, offers=["retry", "drop"], facts={"tried": "3 attempts", "output": "E  assert 1 == 2"}),
            waiting(
                kind="plan", id=2, title="Log in", words="2 tickets to approve", offers=["approve_plan", "reject_plan"]
            ),
            waiting(question(3, default="no")),
            waiting(kind="collect", id=0, title="main", words="2 landed commits", offers=["collect"]),
        ],
    )
    shown = texts(inbox.rows(found, None, 100, 440.0, KEYS))
    assert [row for row in shown if row and not row.startswith(" ")] == [
        "4 things wait for you, most urgent first.",
        "#7  failed, Mend of shop  4m 00s  holds up 4 tickets",
        "P2  plan, Log in of shop  4m 00s",
        "Question 3  permission, ticket 2 of shop, HTTP  1m 00s left",
        "Collect  landed, main of shop",
    ]
    assert "  | E  assert 1 == 2" in shown
    assert {"  tried: 3 attempts", "  YES tries it again, NO removes it", "  YES brings them"} <= {*shown}
    commands = texts(inbox.waiting_rows(found, 100))
    assert "  legion retry 7   or   legion drop 7" in commands
    assert "  legion approve P2   or   legion plan reject P2 'what should be different'" in commands


def test_a_question_shows_its_time_its_default_and_its_keys():
    asked = question(3, default="no")
    rows = texts(inbox.rows(Inbox(questions=[asked], waiting=[waiting(asked)]), None, 100, 440.0, KEYS))
    assert rows[:2] == ["1 thing waits for you.", ""]
    assert rows[2] == "Question 3  permission, ticket 2 of shop, HTTP  1m 00s left"
    assert "without an answer it is a no at " in rows[-2]
    assert rows[-1] == "  YES yes, NO no"


def test_an_empty_inbox_says_so():
    assert texts(inbox.rows(Inbox(questions=[]), None, 80, 0.0, KEYS))[0] == "Nothing waits for you."


def test_questions_alike_have_the_same_kind_and_choices():
    asked = [question(1), question(2), question(3, kind="plan"), question(4, choices=["approve", "reject"])]
    assert [one.id for one in inbox.alike(asked, asked[0])] == [1, 2]
    assert inbox.choice_for(asked[3], yes=True) == "approve"
    assert inbox.choice_for(asked[3], yes=False) == "reject"
    assert inbox.choice_for(question(5, choices=[]), yes=True) == ""


def test_bars_are_drawn_to_an_eighth():
    assert [usage.bar(value, 8.0, 8) for value in (0, 0.5, 4, 8)] == ["        ", "▌       ", "████    ", "████████"]
    assert usage.bar(1, 0, 4) == "    "


def test_tables_cut_the_widest_column_first():
    rows = table([("a", [Cell("key"), Cell("x" * 50), Cell("end")])], 20, keep=1)
    assert rows[0].text == "key  " + "x" * 9 + "…  end"


def test_a_paragraph_is_wrapped_and_cut():
    assert texts(paragraph("one two three", 10)) == ["one two", "three"]
    assert texts(paragraph("a\n" * 30, 10, most=3)) == ["a", "a", "a", "…"]


def test_running_text_is_wrapped_and_keeps_its_colours():
    cells = [Cell("It failed. ", Colour.YELLOW), Cell("r tries again"), Cell("  now", Colour.DIM)]
    assert texts(flow(cells, 16)) == ["It failed. r", "tries again  now"]
    assert texts(flow(cells, 12, indent=1)) == ["It failed. r", " tries again", " now"]
    assert flow(cells, 16)[0].cells[-1] == Cell("r ")
    assert "".join(texts(flow([Cell("x" * 30)], 10))).startswith("xxx"), "a word that is too long is cut"


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_definitions_cut_nothing(columns: int):
    lines = [("a", [Cell("key"), Cell("one two three four five six seven")]), ("b", [Cell("longer"), Cell("end")])]
    rows = definitions(lines, columns, indent=2)
    assert max(width(row.text) for row in rows) <= columns
    assert " ".join(" ".join(texts(rows)).split()) == "key one two three four five six seven longer end"
    assert {row.key for row in rows} == {"a", "b"}


@pytest.mark.parametrize("columns", [50, 70, 120])
def test_the_help_is_not_cut_on_a_narrow_terminal(columns: int):
    rows = help_rows(KeyMap(), (KeyContext.BOARD, KeyContext.TICKETS, KeyContext.LIST), columns)
    assert max(width(row.text) for row in rows) <= columns
    shown = " ".join(" ".join(texts(rows)).split())
    for key in KeyMap().of(KeyContext.TICKETS):
        assert key.id in shown
        assert key.help in shown


def test_in_the_graph_what_a_ticket_waits_for_is_below_its_title():
    ticket = replace(a_board().tickets[5], title="End to end tests of the login")
    lines = texts(board.wave_cards([ticket], 24, ()))
    assert lines[:3] == ["○ #5 End to end tests of", "  the login", "  ← 2, 3"]


def test_a_checkpoint_has_nothing_to_revert():
    landed = a_board().tickets[1]
    assert queue.landed_ticket([landed], "1") is landed
    assert queue.landed_ticket([replace(landed, checkpoint=True)], "1") is None


def a_model_table(*routes: RouteLine) -> models.ModelTable:
    qa = RoleLine(
        name="qa", about="", part="read", tools=None, model="opus", provider="", driver="", origin="shipped", file=""
    )
    provider = ProviderLine(name="anthropic", url="", auth="", key="", found=True, default=True, limit=None)
    return models.ModelTable(
        routes=Routes(file="", routes=list(routes)),
        roles=Roles(roles=[qa]),
        agents=AgentList(you="root", agents=[]),
        providers=Providers(file="", providers=[provider]),
    )


def test_the_table_of_models_says_what_answers_for_each_agent_and_why():
    own = RouteLine(model="*", provider="", to=["ollama/qwen/3"], role="qa")
    other = RouteLine(model="claude-*", provider="", to=["anthropic"])
    before = {one.name: (one.provider, one.model, one.origin) for one in models.users(a_model_table(other))}
    assert before == {"every agent": ("anthropic", "", "the default provider"), "qa": ("", "opus", "its role")}
    found = a_model_table(other, own)
    user = models.user_of(found, "role qa")
    assert user is not None
    assert (user.provider, user.model, user.origin, user.target) == ("ollama", "qwen/3", "set here", "ollama/qwen/3")
    assert models.route_of(found, "role qa") is own
    assert models.route_of(found, "route 0") is other
    assert models.route_of(found, "all") is None
    offered = Models(providers=[ModelsOf(provider="anthropic", models=["opus"])])
    assert [value for value, _ in models.targets(found, offered, has_route=True)] == [
        models.AS_BEFORE, "anthropic", "anthropic/opus",
    ]  # fmt: skip
    assert "Other routes" in texts(models.rows(found, None, 80))
