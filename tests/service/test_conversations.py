"""Conversations over the real service: the person's own, and those of Legion's runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from legion.client.legion import Legion
from legion.domain.runs import Outcome
from legion.domain.scheduling.usage import Spending, Usage
from legion.store.work import runs, usage
from legion.wire.errors import BadInput, NotFound
from tests.conversations.home import CLAUDE, CODEX, GEMINI, OPENCODE, Home, said
from tests.support.legion import Project
from tests.support.office import QuietSquad

EVER = 100_000.0
WAIT = 20.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = Home(tmp_path / "home").fill()
    monkeypatch.setenv("HOME", str(made.root))
    return made


@pytest.fixture
def client(house: QuietSquad, home: Home) -> Legion:
    return house.client


def test_conversations_are_listed_with_what_they_cost(client: Legion, home: Home):
    found = {line.id: line for line in client.conversations(EVER, WAIT).conversations}
    assert set(found) >= {CLAUDE, CODEX, GEMINI, OPENCODE}
    one = found[CLAUDE]
    assert (one.program, one.project, one.branch, one.messages, one.alive) == (
        "claude",
        "/home/ada/shop",
        "master",
        3,
        False,
    )
    assert one.title == "rehearsal: work. Please look at the file"
    assert one.last_answer == "The file says hello. The zebra is done."
    assert one.usd == pytest.approx(0.0695, abs=0.002)
    assert found[CODEX].usd == pytest.approx(0.0606, abs=0.001), "by our prices"
    assert found[GEMINI].usd is None, "no price is known"
    assert found[OPENCODE].usd == pytest.approx(0.0472, abs=0.001), "as the program reports it"
    assert one.path == str(home.claude)


def test_a_search_shows_where_the_words_are(client: Legion, home: Home):
    home.append(home.claude, said("A \x1b[31mred\x1b[0m unicorn\nappears."))
    result = client.search_conversations("unicorn red", EVER, 5, WAIT)
    (hit,) = result.hits
    assert (hit.conversation.id, hit.role, hit.excerpt) == (CLAUDE, "agent", "A red unicorn appears.")
    assert [hit.excerpt[start:end] for start, end in hit.found] == ["red", "unicorn"]
    assert (result.index.complete, result.index.reading) == (True, False)
    assert client.search_conversations("zebra", EVER, 2, WAIT).hits[0].conversation.id == GEMINI
    with pytest.raises(BadInput, match="Nothing to search for: write at least one word"):
        client.search_conversations(" *- ")


def test_a_run_of_legion_is_found_by_its_ticket(client: Legion, house: QuietSquad, project: Project):
    ticket = project.dispatch("Paint the giraffe", "true")
    with house.office.context.store.write() as tx:
        run = runs.start(tx, ticket, 1)
        for model, tokens in (("haiku", 10), ("sonnet", 500)):
            spent = Usage(input=tokens, usd=0.1)
            usage.add(tx, [Spending(run=run.id, provider="p", model=model, day="2026-11-16", usage=spent)])
    journal = house.office.context.data.runs / run.name / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    entry = {"version": 1, "number": 1, "time": 1794830000.0, "kind": "said", "text": "The giraffe is yellow."}
    journal.write_text(json.dumps(entry) + "\n")
    (hit,) = client.search_conversations("giraffe yellow", EVER, 20, WAIT).hits
    line = hit.conversation
    assert (line.program, line.ticket, line.title, line.project) == (
        *("legion", ticket, "Paint the giraffe"),
        project.cwd,
    )
    assert (line.alive, line.model) == (True, "sonnet")
    with house.office.context.store.write() as tx:
        runs.end(tx, run.id, Outcome.FINISHED)
    project.stop(ticket)
    house.client.drop(ticket)
    (hit,) = client.search_conversations("giraffe yellow", EVER, 20, WAIT).hits
    assert (hit.conversation.title, hit.conversation.alive) == (f"ticket-{ticket}", False), "it is off the board"


def test_a_conversation_is_exported_by_the_start_of_its_id(client: Legion, home: Home):
    text = client.export_conversation(CODEX[:6]).text
    assert text.startswith("# rehearsal: codex. Please look at the file\n\n- Program: codex\n")
    for part in ("## Person, 2026-11-16 12:52:21 UTC", "## Call, ", '```\nexec_command: {"cmd": "cat a.txt"}\n```'):
        assert part in text
    assert client.export_conversation().id == GEMINI, "the last one"
    with pytest.raises(NotFound, match=r"There is no conversation 'ffff'; `legion conversations` lists them."):
        client.export_conversation("ffff")
    home.write(home.claude.with_name(f"{CLAUDE[:-1]}0.jsonl"), home.claude.read_bytes())
    with pytest.raises(BadInput, match=f"Several conversations start with '{CLAUDE[:4]}': write more of the id."):
        client.export_conversation(CLAUDE[:4])
    assert client.export_conversation(CLAUDE).id == CLAUDE
    with pytest.raises(BadInput, match=r"There is no format 'pdf': choose one of md, json, html."):
        client.export_conversation(CLAUDE, "pdf")


@pytest.mark.parametrize("resumed", [False, True])
def test_a_run_is_exported_by_what_the_list_shows_with_the_prompt_and_the_persons_words(
    client: Legion, house: QuietSquad, project: Project, resumed: bool
):
    ticket = project.dispatch("Paint the okapi", "true")
    with house.office.context.store.write() as tx:
        older, run = runs.start(tx, ticket, 1), runs.start(tx, ticket, 2)
    for one, at in ((older, 1794830000.0), (run, 1794831000.0)):
        folder = house.office.context.data.runs / one.name
        (folder / "given").mkdir(parents=True)
        (folder / "given" / "briefing.md").write_text("Paint it blue.")
        (folder / "given" / "again.md").write_text("You were cut off.")
        events: list[dict[str, object]] = [
            {"kind": "conversation", "id": "c", "resumed": resumed},
            {"kind": "told", "id": "m", "text": "Use oil."},
            {"kind": "said", "text": f"Painted in {one.name}."},
        ]
        lines = [{"version": 1, "number": n, "time": at + n, **event} for n, event in enumerate(events, 1)]
        (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    listed = {line.id for line in client.conversations(EVER, WAIT).conversations if line.ticket == ticket}
    assert listed == {older.name, run.name}
    for id in (f"#{ticket}", str(ticket), run.name):
        text = client.export_conversation(id).text
        assert f"Painted in {run.name}." in text, "the last run of the ticket"
        assert text.index("You were cut off." if resumed else "Paint it blue.") < text.index("Use oil.")
    assert f"Painted in {older.name}." in client.export_conversation(older.name).text
    with house.office.context.store.write() as tx:
        for one in (older, run):
            runs.end(tx, one.id, Outcome.FINISHED)
    project.stop(ticket)


def test_no_text_of_a_conversation_runs_in_its_document(client: Legion, home: Home):
    worst = "</pre><script>alert(1)</script>\x1b]0;title\x07 ```\n# Not a heading"
    home.append(home.claude, said(worst))
    document = client.export_conversation(CLAUDE, "html").text
    assert "<script" not in document
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt; ```" in document
    assert "default-src 'none'" in document
    for format in ("md", "html"):
        assert not any(
            ord(letter) < 32 and letter not in "\n\t" for letter in client.export_conversation(CLAUDE, format).text
        )
    written = json.loads(client.export_conversation(CLAUDE, "json").text)
    assert written["conversation"]["id"] == CLAUDE
    assert [one["role"] for one in written["entries"]] == ["person", "agent", "call", "result", "agent", "agent"]


def test_sums_are_made_by_program_project_model_and_day(client: Legion):
    found = client.analytics(EVER, WAIT)
    programs = {one.key: one for one in found.by_program}
    assert (programs["claude"].conversations, programs["claude"].messages) == (1, 3)
    assert programs["gemini"].unpriced == 1
    assert {one.key for one in found.by_model} >= {"claude-sonnet-4-5", "gemini-2.5-pro", "m"}
    assert "2026-11-16" in [one.key for one in found.by_day]
    assert found.total.usd == pytest.approx(sum(one.usd for one in found.by_project))


def test_health_names_what_is_stale_large_orphaned_or_damaged(client: Legion, home: Home, tmp_path: Path):
    home.append(home.claude, b"broken\n" + b"".join(said("x", id=f"m{n}") for n in range(1000)))
    found = client.conversation_health(EVER, WAIT)
    mine = {CLAUDE, CODEX, GEMINI, OPENCODE}
    assert {line.id for line in found.orphaned} >= mine, "/home/ada/shop is gone"
    assert [line.id for line in found.large] == [CLAUDE]
    assert [line.id for line in found.broken] == [CLAUDE]
    assert found.largest[0].id == CLAUDE
    assert (found.counts["large"], found.counts["broken"]) == (1, 1)
    assert found.bytes >= home.claude.stat().st_size
    assert found.index_bytes > 0
    assert [line.modified_at for line in found.oldest] == sorted(line.modified_at for line in found.oldest)
    assert {line.id for line in found.stale} <= {line.id for line in client.conversation_health(EVER).oldest}
