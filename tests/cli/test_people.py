"""Commands between a person, their providers and agents at work: what they send, and what their screens say."""

from __future__ import annotations

import json
import time

import pytest

from legion.wire.providers import LimitLine, ProviderLine
from legion.wire.questions import QuestionLine


def a_question(id: int = 3, **told: object) -> QuestionLine:
    facts: dict[str, object] = {
        "id": id,
        "project": "shop",
        "ticket": 12,
        "title": "Add login",
        "words": "May it use WebFetch: https://example.test",
        "asked_at": time.time() - 125,
        "deadline": time.time() + 3475,
        "choices": ["yes", "no"],
        "default": "no",
    }
    return QuestionLine(**{**facts, **told})  # type: ignore[arg-type]


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


def test_the_inbox_says_who_asks_what_until_when_and_how_to_answer(service, legion):
    service.questions = {3: a_question()}
    shown = legion("inbox").out
    for words in ("1 question waits for you.", "ticket 12 of shop, Add login", "May it use WebFetch", "asked 2m 0"):
        assert words in shown
    assert "without an answer it is a no at" in shown
    assert "legion answer 3 yes   or   legion answer 3 no" in shown
    assert "1 question waits for you: legion inbox" in legion("status").out
    service.put(12, state="working")
    assert "legion answer 3 yes" in legion("ticket", "12").out


def test_a_question_cannot_command_the_terminal(service, legion):
    service.questions = {3: a_question(words="\x1b[2Jsweet\nfake line", title="\x1b]0;x\x07t")}
    shown = legion("inbox").out
    assert "\x1b" not in shown
    assert "sweet fake line" in shown


def test_an_answer_is_passed_on_with_its_reason(service, legion):
    service.questions = {3: a_question()}
    assert legion("answer", "#3", "no", "Use the copy.").code == 0
    assert service.told == [(12, "Use the copy.")]
    assert legion("answer", "3", "yes").code == 3


def test_a_rule_for_always_is_shown_before_it_is_saved(service, legion):
    rule = "WebFetch(domain:example.test)"
    service.questions = {3: a_question(choices=["yes", "no", "always"], facts={"rule": rule})}
    shown = legion("answer", "3", "always")
    assert (shown.code, rule in shown.err, "--yes" in shown.err) == (4, True, True)
    assert 3 in service.questions
    assert legion("answer", "3", "always", "--yes").code == 0
    assert service.answered[3].choice == "always"


def test_a_question_of_a_standing_agent_shows_its_facts_and_its_own_choices(service, legion):
    asked = a_question(
        ticket=None,
        kind="ask",
        agent="5f2c1d7e-0000",
        name="tess",
        words="Which database?",
        facts={"found": "two in use"},
        choices=["postgres", "both of them"],
        default="postgres",
    )
    service.questions = {3: asked}
    shown = legion("inbox").out
    for words in ("ask, agent tess of shop", "Which database?", "found: two in use", "it is `postgres` at"):
        assert words in shown
    assert "legion answer 3 postgres   or   legion answer 3 'both of them'" in shown


def test_a_question_without_choices_is_answered_with_words(service, legion):
    service.questions = {3: a_question(kind="ask", choices=[], default="")}
    shown = legion("inbox").out
    assert "left to the agent" in shown
    assert "legion answer 3 'your answer'" in shown
    assert legion("answer", "3", "Take the second one.").code == 0
    assert service.answered[3].choice == "Take the second one."


@pytest.mark.parametrize("words", [("answer",), ("answer", "3"), ("answer", "three", "yes"), ("tell", "1"), ("tell",)])
def test_half_a_command_is_refused(legion, words):
    ended = legion(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1


def test_words_are_passed_on_and_a_deaf_agent_is_a_failure(service, legion):
    service.put(1, state="working")
    assert legion("tell", "1", "hello").code == 0
    assert legion("tell", "1", "you are deaf").code == 1
    assert legion("interrupt", "1").code == 0
    assert service.told == [(1, "hello"), (1, "you are deaf"), (1, "")]


def test_a_message_comes_from_stdin(service, program):
    service.put(1, state="working")
    assert program("tell", "1", "-", stdin=b"from a pipe").code == 0
    assert service.told == [(1, "from a pipe")]


def test_a_key_from_stdin_goes_to_the_daemon_and_to_no_screen(service, program):
    ended = program("provider", "add", "anthropic", "--key-stdin", stdin=b"sk-secret\n")
    assert ended.code == 0
    (added,) = service.added
    assert (added.name, added.key, added.keyring) == ("anthropic", "sk-secret", False)
    assert "sk-secret" not in ended.out + ended.err
    assert "Note: Ticket 1 goes on." in ended.err


def test_a_relative_key_file_is_sent_with_its_whole_path(service, legion, tmp_path):
    legion("provider", "add", "anthropic", "--key-file", "key")
    assert service.added[0].key_file == str(tmp_path / "key")


def test_no_option_takes_a_key(legion):
    assert legion("provider", "add", "anthropic", "--key", "sk-secret").code == 2
    assert legion("provider", "add", "anthropic", "sk-secret").code == 2


def test_the_list_says_where_keys_are_and_how_much_is_left(service, legion):
    limit = LimitLine(at=time.time(), status=200, window="5h", utilization=0.87, resets_at=time.time() + 700)
    service.providers_there = {
        "anthropic": a_provider("anthropic", default=True, limit=limit),
        "other": a_provider("other", found=False, key="variable X"),
        "ring": a_provider("ring", found=None, key="keyring"),
    }
    first, used, second, third, file = legion("provider", "list").out.splitlines()
    assert first.split()[:2] == ["anthropic", "default"]
    assert used.startswith("  87% of 5h used, resets ")
    assert "not there" in second
    assert "not checked" in third
    assert file == "in /providers.toml"
    told = json.loads(legion("provider", "list", "--json").out)
    assert (told["schema"], told["providers"][0]["limit"]["utilization"]) == ("legion.providers/1", 0.87)


def test_without_providers_the_list_says_what_to_do(legion):
    assert "legion provider add anthropic" in legion("provider", "list").out


def test_a_test_that_did_not_go_well_ends_with_one(service, legion):
    assert legion("provider", "test", "x").code == 1
    service.providers_there = {"x": a_provider("x")}
    assert legion("provider", "test", "x", "--model", "m-2").code == 0


def test_removing_what_agents_use_needs_a_yes(service, legion):
    service.providers_there = {"x": a_provider("x")}
    assert legion("provider", "remove", "x").code == 5
    assert legion("provider", "remove", "x", "--yes").code == 0
    assert legion("provider", "remove", "x").code == 3


def test_the_group_alone_explains_itself(legion):
    ended = legion("provider")
    assert (ended.code, "Example:" in ended.out) == (0, True)
    assert legion("provider", "ad").code == 2


@pytest.mark.parametrize(
    ("typed", "offered"),
    [(("provider", "test", ""), "anthropic"), (("provider", "remove", "an"), "anthropic"), (("answer", ""), "3")],
)
def test_names_and_numbers_are_completed(service, program, typed, offered):
    service.providers_there = {"anthropic": a_provider("anthropic")}
    service.questions = {3: a_question()}
    words = " ".join(("legion", *typed))
    env = {"_LEGION_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(typed))}
    assert f"plain,{offered}" in program(env=env).out
