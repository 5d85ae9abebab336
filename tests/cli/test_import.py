"""`legion import` over the real service: sources as their tools document them, broken ones included."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from legion.cli.imports import legion_cc
from tests.support.board import Board
from tests.support.repository import Repository

FILES = Path(__file__).parent / "other_tools"

OLD_TABLES = """
CREATE TABLE providers (id TEXT, name TEXT, base_url TEXT, api_key TEXT, api_format TEXT, models TEXT);
CREATE TABLE pane_configs (pane_label TEXT, provider_id TEXT, model TEXT);
CREATE TABLE roles (id TEXT, name TEXT, prompt_template TEXT);
CREATE TABLE teams (id TEXT, name TEXT, roles TEXT, team_prompt TEXT);
CREATE TABLE squad_sessions (name TEXT, project_path TEXT, worker_count INTEGER);
CREATE TABLE tickets (id INTEGER, session_name TEXT, title TEXT, prompt TEXT, context TEXT, criteria TEXT, status TEXT,
    team_mode TEXT, feedback TEXT, blocked_by TEXT, merge_status TEXT, structure_plan TEXT, is_checkpoint INTEGER);
INSERT INTO providers VALUES ('p1', 'Work Relay', 'https://relay.example.test', 'sk-secret', 'anthropic_bearer', '[]'),
    ('p2', 'Copilot', 'https://api.example.test', NULL, 'github_copilot', '[]');
INSERT INTO pane_configs VALUES ('leader', 'p1', 'opus');
INSERT INTO roles VALUES ('qa', 'QA', 'You test.'), ('poet', 'Poet', 'You name things well.'), ('mute', 'Mute', '');
INSERT INTO teams VALUES ('solo', 'Solo', '[]', ''), ('writers', 'Writers', '["poet", "engineer", "qa"]', 'Be kind.');
INSERT INTO squad_sessions VALUES ('feature-x', 'ROOT', 2), ('other', '/nowhere/else', 2);
INSERT INTO tickets VALUES
    (1, 'feature-x', 'Tables', 'Make them', NULL, NULL, 'done', 'tech_lead_team', NULL, '[]', 'conflict', NULL, 0),
    (2, 'feature-x', 'Login', 'A login page', 'In app/', 'It works', 'working', '{"custom":"writers"}', 'Too big',
     '[1]', 'pending', 'First this', 0),
    (3, 'feature-x', 'Check', 'Check', NULL, NULL, 'queued', 'tech_lead_team', NULL, '[2]', 'pending', NULL, 1),
    (4, 'other', 'Foreign', 'Not here', NULL, NULL, 'queued', 'solo', NULL, 'broken', 'pending', NULL, 0);
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    shutil.copytree(FILES / "home", place)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.delenv("COORD_CONFIG", raising=False)
    return place


def shown(ended) -> dict[str, tuple[str, str, str]]:
    """By what: kind, what it becomes, and the note."""
    report = json.loads(ended.out)
    return {
        line["what"]: (line["kind"], line["becomes"], line["note"])
        for source in report["sources"]
        for line in source["lines"]
    }


def test_beads_become_tickets_with_edges_epics_and_a_second_import_changes_nothing(board: Board, legion, home: Path):
    source = str(FILES / "project/.beads")
    dry = legion("import", source, "--dry-run", "--json")
    assert dry.code == 0
    assert {becomes for kind, becomes, _ in shown(dry).values() if kind == "ticket"} == {"a ticket"}
    assert board.service.status(board.cwd).tickets == []

    first = shown(legion("import", source, "--json"))
    tables = int(first["bd-2 Tables for users"][1].split()[-1])
    login = int(first["bd-3 Login page"][1].split()[-1])
    page = board.service.ticket(tables)
    assert (page.text, page.plan, page.criteria, page.context) == (
        "Create them.",
        "Two tables.",
        "make test passes",
        "Use SQLite.",
    )
    line = page.ticket
    assert (line.epic, line.priority, line.labels, line.state) == ("Accounts", 2, ["db-layer", "feature"], "parked")
    assert board.service.ticket(login).ticket.after == [tables]
    assert board.service.ticket(login).context == "ada: Keep it small."
    left = {what: note for what, (kind, _, note) in first.items() if kind == "left out"}
    assert left["bd-4 Old thing"] == "it is closed"
    assert left["line 6"] == "it is not valid JSON; a merge may have broken it"
    assert left["line 7"] == "it has no id"
    assert "no work for an agent" in left["bd-5 Merge it"]
    assert left["bd-6 after bd-7"] == "these wait for each other"
    assert "routes.jsonl" in left

    numbers = {one.id for one in board.service.status(board.cwd).tickets}
    again = legion("import", source)
    assert "Nothing is new, so nothing was changed." in again.err
    assert {one.id for one in board.service.status(board.cwd).tickets} == numbers

    legion("import", source, "--start")
    assert {one.state for one in board.service.status(board.cwd).tickets} == {"queued"}


def test_a_ticket_that_was_dropped_is_not_imported_again(board: Board, legion, home: Path):
    source = str(FILES / "lists/bullets.md")
    numbers = [int(becomes.split()[-1]) for _, becomes, _ in shown(legion("import", source, "--json")).values()]
    board.service.stop(numbers[0])
    board.service.drop(numbers[0])
    assert legion("import", source, "--start").code == 0
    assert [one.id for one in board.service.status(board.cwd).tickets] == [numbers[1]]


def test_exported_beads_are_read_again(board: Board, legion, home: Path, tmp_path: Path):
    legion("import", str(FILES / "project/.beads"))
    file = tmp_path / "issues.jsonl"
    assert legion("export-beads", "-o", str(file)).code == 0
    assert "exists; pass a new file" in legion("export-beads", "-o", str(file)).err
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    tables = next(one for one in lines if one["title"] == "Tables for users")
    assert (tables["priority"], tables["design"], tables["status"]) == (0, "Two tables.", "blocked")
    assert [one["title"] for one in lines if one["issue_type"] == "epic"] == ["Accounts"]
    read = shown(legion("import", str(file), "--dry-run", "--json"))
    assert sum(kind == "ticket" for kind, _, _ in read.values()) == 4


def test_claude_squads_worktree_is_adopted_with_its_uncommitted_work(board: Board, legion, home: Path, tmp_path: Path):
    tree = tmp_path / "squad-tree"
    board.repository.git("worktree", "add", "--quiet", "-b", "ada/cart", str(tree))
    Repository.at(tree).commit("half", {"cart.txt": "half\n"})
    (tree / "README.txt").write_text("changed, not committed\n")
    (tree / "new.txt").write_text("new\n")
    (tree / "secret.env").write_text("hidden\n")
    exclude = board.repository.root / ".git/info/exclude"
    exclude.write_text("secret.env\n")
    board.repository.git("branch", "ada/paused", "change")
    instance = {
        "title": "cart",
        "path": board.cwd,
        "branch": "ada/cart",
        "status": 1,
        "program": "claude",
        "created_at": "2026-05-01T10:00:00Z",
        "worktree": {"repo_path": board.cwd, "worktree_path": str(tree), "branch_name": "ada/cart"},
    }
    paused = {
        **instance,
        "title": "paused",
        "branch": "ada/paused",
        "worktree": {"repo_path": board.cwd, "worktree_path": "/gone", "branch_name": "ada/paused"},
    }
    foreign = {**instance, "title": "foreign", "path": "/nowhere/else", "worktree": {}}
    lost = {**paused, "title": "lost", "worktree": {"repo_path": board.cwd, "branch_name": "ada/none"}}
    (home / ".claude-squad/state.json").write_text(
        json.dumps({"help_screens_seen": 3, "instances": [instance, paused, foreign, lost, {}]})
    )
    before = board.repository.fingerprint(), Repository.at(tree).fingerprint()
    first = shown(legion("import", "claude-squad", "--json"))
    assert (board.repository.fingerprint(), Repository.at(tree).fingerprint()) == before

    made = {
        what.partition("@")[0]: (becomes, note) for what, (kind, becomes, note) in first.items() if kind == "ticket"
    }
    assert made["cart"][1] == f"starts from the work in {tree}, uncommitted files included"
    assert made["paused"][1] == "starts from the work in branch ada/paused"
    assert "starts without its work" in made["lost"][1]
    assert "belongs to /nowhere/else" in first["foreign"][2]
    ticket = board.tickets[int(made["cart"][0].split()[-1])]
    assert ticket.base == board.base
    hub = board.context.hub(ticket.project)
    assert ticket.plant is not None
    assert {file.path for file in hub.changed_files(board.base, ticket.plant)} == {"README.txt", "cart.txt", "new.txt"}
    assert first["default_program = /usr/local/bin/claude"][1] == 'config.toml: default_driver = "claude"'
    assert first["profile fast_one"][1] == 'config.toml: [drivers.fast_one] run = "aider --model small"'
    assert first["profile fast_one, interactive"][1] == 'config.toml: [drivers.fast_one] driver = "terminal"'
    board.repository.git("worktree", "remove", "--force", str(tree))


def test_legion_ccs_database_brings_tickets_roles_teams_and_providers(board: Board, legion, home: Path, tmp_path: Path):
    file = tmp_path / "legion.db"
    with sqlite3.connect(file) as database:
        database.executescript(OLD_TABLES.replace("ROOT", board.cwd))
    database.close()
    before = file.read_bytes()
    assert legion_cc.is_one(file)
    assert not legion_cc.is_one(board.data.database)
    first = shown(legion("import", str(file), "--json"))
    assert file.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("legion.db")] == ["legion.db"]

    login = board.service.ticket(int(first["feature-x/2 Login"][1].split()[-1]))
    assert (login.text, login.plan, login.ticket.team, login.ticket.epic) == (
        "A login page",
        "First this",
        "writers",
        "feature-x",
    )
    assert login.context == "In app/\n\nOf an earlier attempt: Too big"
    check = board.service.ticket(int(first["feature-x/3 Check"][1].split()[-1])).ticket
    assert (check.checkpoint, check.after) == (True, [login.ticket.id])
    assert first["role poet"][1] == "your role poet"
    assert board.service.team(board.cwd, "writers").team.roles == ["poet", "engineer", "qa"]
    assert first["provider work-relay"][2] == "with its key, in a file that only you can read"
    left = {what: note for what, (kind, _, note) in first.items() if kind == "left out"}
    assert left["ticket 1 Tables"] == "it is done; its change is not merged there (conflict)"
    assert "belongs to /nowhere/else" in left["ticket 4 Foreign"]
    assert {"role QA", "role Mute", "team solo", "provider Copilot", "pane_configs (1)", "squad_sessions (2)"} <= {
        *left
    }
    again = shown(legion("import", str(file), "--json"))
    assert {note for kind, _, note in again.values() if kind in ("ticket", "role", "team", "provider")} == {
        "is there already"
    }
    board.service.remove_team(board.cwd, "writers")
    board.service.remove_role(board.cwd, "poet")


def test_what_is_in_the_write_ahead_log_of_legion_cc_is_read_and_a_second_database_is_another_source(
    board: Board, legion, home: Path, tmp_path: Path
):
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        file = tmp_path / place / "legion.db"
        writes = sqlite3.connect(file)
        writes.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;")
        writes.executescript(OLD_TABLES.replace("ROOT", board.cwd))
        found = shown(legion("import", str(file), "--json"))
        again = shown(legion("import", str(file), "--json"))
        writes.close()
        assert found["feature-x/2 Login"][2] != "is there already", place
        assert again["feature-x/2 Login"][2] == "is there already"
    board.service.remove_team(board.cwd, "writers")
    board.service.remove_role(board.cwd, "poet")


def test_settings_are_shown_with_their_file_and_the_rest_with_its_reason(board: Board, legion, home: Path):
    ended = legion("import", "coord", "--json")
    assert ended.code == 0
    first = shown(ended)
    settings = {becomes for kind, becomes, _ in first.values() if kind == "setting"}
    assert settings == {
        'legion.toml: [checks.test] run = "make test"',
        'legion.toml: [checks.build] run = "make build"',
        'legion.toml: [checks.smoke] run = "make smoke"',
        "legion.toml: [checks.smoke] timeout = 600",
        "legion.toml: [agents] parallel = 2",
        "legion.toml: [agents] attempts = 4",
        'legion.toml: [review] policy = "always"',
        "legion.toml: [review] required = false",
        'legion.toml: [review] checklist = ["Look at the edges."]',
        "config.toml: [daemon] slots = 6",
        'config.toml: [rhythm] quiet = "22:00-07:00"',
        "config.toml: [rhythm] stagger = 30",
        'config.toml: [claude] model = "sonnet"',
        'config.toml: [models] escalation = ["haiku", "sonnet", "opus"]',
        'config.toml: [models] by_label = {"docs" = ["haiku"]}',
        'legion.toml: [project] depends_on = ["lib"]',
    }
    left = {what for what, (kind, _, _) in first.items() if kind == "left out"}
    assert left == {
        *("repos: lib", "repos.shop.default_branch"),
        *("machines.tower.host", "machines.tower.repo_paths"),
        *("machines.here.capabilities", "machines.here.repo_paths", "concurrency.backoff_base = 60"),
        *("smoke_tests.capability_rules", "hooks", "surprise"),
    }
    assert all(note for kind, _, note in first.values() if kind == "left out")
    invite = "legion machine invite tower --labels gpu,mac-os --slots 8 --quiet-hours 22:00-07:00"
    assert first["machines.tower"][:2] == ("machine", invite)
    page = legion("import", "coord").out
    assert invite in page
    assert "Settings that do the same; write them yourself" in page
    assert "Left out" in page


def test_claude_orchestras_config_and_agents(board: Board, legion, home: Path):
    first = shown(legion("import", "orchestra", "--json"))
    assert first["bypass_permissions"][1] == 'config.toml: [claude] allow = ["Bash(git *)", "Read(*)"]'
    made = board.service.ticket(int(first["1a2b3c4d Add a health page"][1].split()[-1]))
    assert made.context == "The last attempt failed: exit 1"
    assert first["5e6f7a8b Write docs"][2] == "it is completed; what it changed is on its branch"
    assert "in another repository" in first["9c0d1e2f Elsewhere"][2]
    assert first["bad"][2] == "it has no task"


def test_agent_teams_and_agents_of_claude_code(board: Board, legion, home: Path):
    first = shown(legion("import", str(home / ".claude/teams/checkout"), "--json"))
    pay = int(first["checkout/2 Pay the cart"][1].split()[-1])
    mail = board.service.ticket(int(first["checkout/3 Receipt by mail"][1].split()[-1])).ticket
    assert (mail.after, mail.epic) == ([pay], "checkout")
    assert "is not valid JSON" in first["checkout"][2]
    assert "legion agents hire TASK --name tester" in first["teammate tester"][2]

    ended = legion("import", str(FILES / "project/.claude/agents"), "--dry-run", "--json")
    second = shown(ended)
    assert second["role page_builder"][1] == "your role page_builder"
    assert "is not valid YAML" in second["broken.md"][2]
    assert second["hollow.md"][2] == "it has no prompt below its head"
    legion("import", "agents")
    reader = board.service.role(board.cwd, "security_reviewer")
    assert (reader.role.part, reader.role.model, reader.role.tools) == ("read", "opus", ["Glob", "Grep", "Read"])
    board.service.remove_role(board.cwd, "security_reviewer")


def test_specs_of_auto_claude(board: Board, legion, home: Path):
    first = shown(legion("import", str(FILES / "project/.auto-claude/specs"), "--json"))
    page = board.service.ticket(int(first["001-dark-mode Dark mode"][1].split()[-1]))
    assert page.text.startswith("# Dark mode")
    assert page.criteria == "All pages are dark\nThe switch is remembered"
    assert page.plan == "- [x] Colours (style.css)\n- [ ] Switch"
    assert "starts without its work" in first["001-dark-mode Dark mode"][2]
    assert first["002-done"][2] == "it is done; what it changed is on its branch"
    assert "is not valid JSON" in first["003-broken"][2]


def test_lists_in_markdown_csv_and_json(board: Board, legion, home: Path):
    tasks = shown(legion("import", str(FILES / "lists/tasks.md"), "--json"))
    cart = board.service.ticket(int(tasks["Cart page"][1].split()[-1]))
    assert (cart.text.splitlines()[0], cart.ticket.epic) == ("Shows the items.", "Pages")
    assert "- [ ] not a task" in cart.text
    assert tasks["Home page"][2] == "its box is ticked"
    assert tasks["Search"][2] == "it is in the list twice"
    assert sorted(one.title for one in board.service.status(board.cwd).tickets) == ["Cart page", "Search"]

    rows = shown(legion("import", str(FILES / "lists/tasks.csv"), "--json"))
    first = int(rows["A Make tables"][1].split()[-1])
    line = board.service.ticket(first).ticket
    assert (line.priority, line.labels) == (5, ["db", "core"])
    assert board.service.ticket(int(rows["B Fill them"][1].split()[-1])).ticket.after == [first]
    assert rows["Old"][2] == "it is done"

    issues = shown(legion("import", str(FILES / "lists/issues.json"), "--json"))
    url = "https://github.example.test/ada/shop/issues/7"
    made = board.service.ticket(int(issues[f"{url} Crash on empty cart"][1].split()[-1]))
    assert (made.ticket.labels, made.ticket.epic) == (["bug", "status-ready"], "1.0")
    assert made.context == f"Issue #7, {url}\n\nbob: Here too."
    assert issues["#8 Typo"][2] == "it is closed"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lists/prose.md", "has no list"),
        ("lists/untitled.csv", "has no column for titles"),
        ("lists/nothing.json", "is neither a file nor one of the tools"),
        ("project/.claude", "holds nothing that Legion reads"),
    ],
    ids=["prose", "untitled", "missing", "folder"],
)
def test_what_cannot_be_read_is_refused_with_one_sentence(board: Board, legion, home: Path, name: str, words: str):
    ended = legion("import", str(FILES / name))
    assert ended.code != 0
    assert words in ended.out + ended.err
    assert board.service.status(board.cwd).tickets == []


@pytest.mark.parametrize(
    "text",
    ["", "\0\xff", "[" * 100_000, "{", "- - -", "---\n---"],
    ids=["empty", "binary", "deep", "open", "dashes", "head"],
)
@pytest.mark.parametrize("name", ["a.yml", "a.json", "a.jsonl", "a.db", "a.csv", "a.md"])
def test_no_broken_file_is_a_crash(board: Board, legion, home: Path, tmp_path: Path, name: str, text: str):
    file = tmp_path / name
    file.write_bytes(text.encode("latin-1"))
    ended = legion("import", str(file), "--dry-run")
    assert ended.code in (0, 2, 3, 6)
    assert "Traceback" not in ended.err


def test_without_a_source_everything_of_this_project_comes_along(board: Board, legion, home: Path):
    target = Path(board.cwd, ".beads")
    shutil.copytree(FILES / "project/.beads", target)
    try:
        ended = legion("import", "--dry-run")
    finally:
        shutil.rmtree(target)
    for tool in ("beads", "claude-coordinator", "claude-orchestra", "claude-squad", "claude-agents"):
        assert f"{tool}  " in ended.out
    assert f"legion import {home}/.claude/teams/checkout" in ended.err


def test_a_tool_and_a_file_of_it_may_be_named_together(board: Board, legion, home: Path, tmp_path: Path):
    file = tmp_path / "mine.yml"
    file.write_text("machines:\n  - {name: server, capabilities: [gpu], max_workers: 3}\n")
    assert "legion machine invite server --labels gpu --slots 3" in legion("import", "coordinator", str(file)).out
    refused = legion("import", "beads", str(file))
    assert (refused.code, "is of claude-coordinator, not of beads" in refused.err) == (2, True)
