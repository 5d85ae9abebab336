"""Commands between a person, their providers and agents at work: what they send, and what their screens say."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from legion.domain.errors import StateConflict
from legion.domain.questions import QuestionKind
from legion.wire.agents import HireAgent
from legion.wire.mail import Answered, Delivered
from legion.wire.projects import Done
from legion.wire.providers import AddProvider, LimitLine, ProviderAnswer, ProviderLine, Providers
from tests.support.board import Board


def a_provider(name: str, **told: object) -> ProviderLine:
    facts: dict[str, object] = {
        "url": "https://api.example.test",
        "auth": "x-api-key",
        "key": "kept by Legion",
        "found": True,
        "default": False,
        "limit": None,
    }
    return ProviderLine(name=name, **{**facts, **told})  # type: ignore[arg-type]


def test_the_inbox_says_who_asks_what_until_when_and_how_to_answer(board: Board, legion):
    board.put(12, "Add login", "working")
    board.ask()
    shown = legion("inbox").out
    for words in ("1 thing waits for you.", "ticket 12 of shop, Add login", "May it use WebFetch", "asked 2m 0"):
        assert words in shown
    assert "without an answer it is a no at" in shown
    assert "legion answer 3 yes   or   legion answer 3 no" in shown
    assert "1 question waits for you: legion inbox" in legion("status").out
    assert "legion answer 3 yes" in legion("ticket", "12").out


def test_a_question_cannot_command_the_terminal(board: Board, legion):
    board.put(12, "\x1b]0;x\x07t", "working")
    board.ask(words="\x1b[2Jsweet\nfake line")
    shown = legion("inbox").out
    assert "\x1b" not in shown
    assert "sweet fake line" in shown


def test_an_answer_is_passed_on_with_its_reason(board: Board, legion):
    board.put(12, state="working")
    board.ask(kind=QuestionKind.ASK)
    assert legion("answer", "#3", "no", "Use the copy.").code == 0
    assert (board.question().choice, board.question().why) == ("no", "Use the copy.")
    assert legion("answer", "3", "yes").code == 5
    assert legion("answer", "4", "yes").code == 3


def test_a_rule_for_always_is_shown_before_it_is_saved(board: Board, legion):
    rule = "WebFetch(domain:example.test)"
    board.put(12, state="working")
    board.ask(choices=("yes", "no", "always"), facts={"rule": rule})
    shown = legion("answer", "3", "always")
    assert (shown.code, rule in shown.err, "--yes" in shown.err) == (4, True, True)
    assert board.callers.asked == ["inbox"]
    board.callers.instead["answer"] = Answered(question=3, ticket=12, allowed=True, message="The agent goes ahead.")
    assert legion("answer", "3", "always", "--yes").code == 0
    assert board.callers.sent[-1]["given"].choice == "always"


def test_a_question_of_a_standing_agent_shows_its_facts_and_its_own_choices(board: Board, legion):
    hired = board.service.hire(HireAgent(task="Stand there.", name="tess", cwd=board.cwd))
    board.ask(
        ticket=None,
        kind=QuestionKind.ASK,
        agent=hired.id,
        words="Which database?",
        facts={"found": "two in use"},
        choices=("postgres", "both of them"),
        fallback="postgres",
    )
    shown = legion("inbox").out
    for words in ("ask, agent tess of shop", "Which database?", "found: two in use", "it is `postgres` at"):
        assert words in shown
    assert "legion answer 3 postgres   or   legion answer 3 'both of them'" in shown


def test_a_question_without_choices_is_answered_with_words(board: Board, legion):
    board.put(12, state="working")
    board.ask(kind=QuestionKind.ASK, choices=(), fallback="")
    shown = legion("inbox").out
    assert "left to the agent" in shown
    assert "legion answer 3 'your answer'" in shown
    assert legion("answer", "3", "Take the second one.").code == 0
    assert board.question().choice == "Take the second one."


@pytest.mark.parametrize("words", [("answer",), ("answer", "3"), ("answer", "three", "yes"), ("tell", "1"), ("tell",)])
def test_half_a_command_is_refused(legion, words):
    ended = legion(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1


def told(*, heard: bool | None) -> Delivered:
    """What a real run answers is tested with one."""
    return Delivered(ticket=1, run=1, heard=heard, message="It was sent.")


def test_words_are_passed_on_and_a_deaf_agent_is_a_failure(board: Board, legion):
    board.callers.instead = {"tell": told(heard=True), "interrupt": told(heard=None)}
    assert legion("tell", "1", "hello").code == 0
    board.callers.instead["tell"] = told(heard=False)
    assert legion("tell", "1", "you are deaf").code == 1
    assert legion("interrupt", "1").code == 0
    assert [(sent["id"], sent["message"].text) for sent in board.callers.sent if "message" in sent] == [
        (1, "hello"),
        (1, "you are deaf"),
        (1, ""),
    ]


def test_words_for_a_ticket_without_a_run_are_refused(board: Board, legion):
    board.put(1)
    assert legion("tell", "1", "hello").code == 5


def test_a_message_comes_from_stdin(board: Board, program):
    board.callers.instead = {"tell": told(heard=True)}
    assert program("tell", "1", "-", stdin=b"from a pipe").code == 0
    assert board.callers.sent[-1]["message"].text == "from a pipe"


def test_a_key_from_stdin_goes_to_the_daemon_and_to_no_screen(board: Board, program, tmp_path: Path):
    ended = program("provider", "add", "anthropic", "--key-stdin", stdin=b"sk-secret\n")
    assert ended.code == 0
    added = board.callers.sent[-1]["wanted"]
    assert (added.name, added.key, added.keyring) == ("anthropic", "sk-secret", False)
    assert "sk-secret" not in ended.out + ended.err
    places = [*tmp_path.rglob("*"), *board.data.root.rglob("*")]
    (kept,) = [path for path in places if path.is_file() and b"sk-secret" in path.read_bytes()]
    assert kept.stat().st_mode & 0o077 == 0
    board.callers.instead = {"add_provider": Done(message="Added.", notes=["Ticket 1 goes on."])}
    assert "Note: Ticket 1 goes on." in program("provider", "add", "anthropic", "--key-stdin", stdin=b"k").err


def test_a_relative_key_file_is_sent_with_its_whole_path(board: Board, legion):
    legion("provider", "add", "anthropic", "--key-file", "key")
    assert board.callers.sent[-1]["wanted"].key_file == f"{board.cwd}/key"


def test_no_option_takes_a_key(legion):
    assert legion("provider", "add", "anthropic", "--key", "sk-secret").code == 2
    assert legion("provider", "add", "anthropic", "sk-secret").code == 2


def test_the_list_says_where_keys_are_and_how_much_is_left(board, legion):
    limit = LimitLine(at=time.time(), status=200, window="5h", utilization=0.87, resets_at=time.time() + 700)
    lines = [
        a_provider("anthropic", default=True, limit=limit),
        a_provider("other", found=False, key="variable X"),
        a_provider("ring", found=None, key="keyring"),
    ]
    board.callers.instead = {"providers": Providers(file="/providers.toml", providers=lines)}
    first, used, second, third, file = legion("provider", "list").out.splitlines()
    assert first.split()[:2] == ["anthropic", "default"]
    assert used.startswith("  87% of 5h used, resets ")
    assert "not there" in second
    assert "not checked" in third
    assert file == "in /providers.toml"
    answer = json.loads(legion("provider", "list", "--json").out)
    assert (answer["schema"], answer["providers"][0]["limit"]["utilization"]) == ("legion.providers/1", 0.87)


def test_without_providers_the_list_says_what_to_do(legion):
    assert "legion provider add anthropic" in legion("provider", "list").out


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_a_test_that_did_not_go_well_ends_with_one(board: Board, legion, ok, code):
    board.callers.instead = {"try_provider": ProviderAnswer(provider="x", ok=ok, model="m", ms=12, message="So it is.")}
    assert legion("provider", "test", "x", "--model", "m-2").code == code
    assert board.callers.sent[-1]["wanted"].model == "m-2"


def test_removing_what_agents_use_needs_a_yes(board: Board, legion):
    add_provider(board)
    board.callers.trouble = StateConflict("Agents work with it: add --yes.")
    assert legion("provider", "remove", "anthropic").code == 5
    assert board.callers.sent[-1]["wanted"].yes is False
    board.callers.trouble = None
    assert legion("provider", "remove", "anthropic", "--yes").code == 0
    assert board.callers.sent[-1]["wanted"].yes is True
    assert legion("provider", "remove", "anthropic").code == 3


def add_provider(board: Board) -> None:
    board.service.add_provider(AddProvider(name="anthropic", key_env="KEY"))


def test_the_group_alone_explains_itself(legion):
    ended = legion("provider")
    assert (ended.code, "Example:" in ended.out) == (0, True)
    assert legion("provider", "ad").code == 2


@pytest.mark.parametrize(
    ("typed", "offered"),
    [(("provider", "test", ""), "anthropic"), (("provider", "remove", "an"), "anthropic"), (("answer", ""), "3")],
)
def test_names_and_numbers_are_completed(board, program, typed, offered):
    add_provider(board)
    board.put(12, state="working")
    board.ask()
    words = " ".join(("legion", *typed))
    env = {"_LEGION_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(typed))}
    assert f"plain,{offered}" in program(env=env).out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("reply",), "A reply needs the number of a message and a text"),
        (("reply", "14"), "A reply needs the number of a message and a text"),
        (("thread",), "`legion inbox mail thread 14`"),
        (("search",), "`legion inbox mail search login`"),
        (("archive", "x"), "'x' is no number of a message"),
        (("ida", "bob"), "takes one agent"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_a_word_of_mail_that_lacks_something_is_refused_with_an_example(
    board: Board, legion, words: tuple[str, ...], reason: str
):
    refused = legion("mail", *words)
    assert refused.code == 2
    assert reason in refused.err
