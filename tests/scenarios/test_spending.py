"""What agents spend is counted, shown and limited; the key that pays for it is nowhere but in its own file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.looking import until_seen
from tests.support.models import KEY, Company, company

MODEL = "claude-sonnet-4-5"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    # One of these tests leaves a limit behind, which would hold those that come after it.
    with company(tmp_path_factory.mktemp("spending"), settings="[governor]\non = false\n", stand_in=True) as one:
        yield one


def spender(here: Company, name: str, command: str, **fields: object) -> int:
    """Two requests that say that they took ten thousand tokens each, three cents at this model's price."""
    here.script(
        name,
        f"""
        [[step]]
        say = "I work."
        usage = {{input = 10000, output = 0, cache_read = 0, cache_write = 0}}
        call = {{tool = "Bash", input = {{command = {json.dumps(command)}}}}}

        [[step]]
        say = "Done."
        usage = {{input = 10000, output = 0, cache_read = 0, cache_write = 0}}
        """,
    )
    return here.dispatch(name, model=MODEL, **fields)


def test_requests_tokens_and_dollars_are_on_the_page_and_in_the_status(here: Company):
    ticket = spender(here, "counted", "echo a > counted.txt")
    here.project.until(ticket, "done")
    until_seen(here.squad, lambda: getattr(here.project.ticket(ticket).usage, "requests", 0) == 2, "its requests")
    page = here.project.ticket(ticket)
    assert page.usage is not None
    assert (page.usage.input, page.usage.unpriced, page.usage.failed) == (20000, 0, 0)
    assert page.usage.usd == pytest.approx(0.06, rel=0.01)
    assert page.runs[0].usage == page.usage
    shown = here.told("ticket", str(ticket))
    assert "$0.06  2 requests  20.0k in" in shown
    assert f"conversation  {page.conversation}" in shown
    assert "model access  rehearsal" in shown
    assert " spent" in here.told("status")


def test_a_budget_parks_the_ticket_and_resume_gives_it_as_much_again(here: Company):
    ticket = spender(here, "dear", "echo a > dear.txt", budget=0.02)
    page = here.project.until(ticket, "parked")
    assert [run.outcome for run in page.runs] == ["out_of_budget"]
    until_seen(here.squad, lambda: getattr(here.project.ticket(ticket).usage, "usd", 0) > 0, "its price")
    shown = here.told("ticket", str(ticket))
    assert "budget        $0.02, of which $0.03 is spent" in shown
    assert f"`legion resume {ticket}` gives it as much again" in " ".join(shown.split())
    here.told("resume", str(ticket))
    page = here.project.until(ticket, "done")
    assert [run.outcome for run in page.runs] == ["out_of_budget", "finished"]
    assert page.ticket.attempt == 1


def test_a_spent_budget_is_a_question_that_gives_as_much_again(here: Company):
    ticket = spender(here, "asking", "echo a > asking.txt", budget=0.02)
    here.project.until(ticket, "parked")
    (question,) = [one for one in here.squad.client.inbox().questions if one.ticket == ticket]
    assert (question.kind, question.choices, question.default) == ("budget", ["more", "leave"], "leave")
    assert "Shall it get as much again?" in here.told("inbox")
    here.told("answer", str(question.id), "more")
    here.project.until(ticket, "done")
    assert [one for one in here.squad.client.inbox().questions if one.ticket == ticket] == []


def test_a_budget_is_asked_for_on_the_command_line_and_in_a_plan(here: Company, tmp_path: Path):
    here.told("pause")
    made = here.told("dispatch", "-t", "x", "--driver", "claude", "--budget", "2.50", "--ask", "text")
    page = here.project.ticket(int(made.split()[2]))
    assert (page.budget, page.ask) == (2.5, True)
    plan = tmp_path / "plan.toml"
    plan.write_text('[[ticket]]\ntitle = "y"\ndriver = "claude"\nbudget = 3\nask = true\n')
    made = here.told("dispatch", "--from", str(plan))
    page = here.project.ticket(int(made.split()[2]))
    assert (page.budget, page.ask) == (3.0, True)
    here.told("stop", "all")
    here.told("resume")
    for bad in ("0", "-1", "nan", "much"):
        refused = here.cli("dispatch", "-t", "x", "--command", "true", f"--budget={bad}")
        assert (refused.returncode, refused.stdout) == (2, "")
    plan.write_text('[[ticket]]\ntitle = "y"\nbudget = "much"\n')
    assert "`budget` must be a number of dollars" in here.cli("dispatch", "--from", str(plan)).stderr


def test_a_limit_is_no_failure_and_everybody_says_when_work_goes_on(here: Company):
    here.script(
        "limited",
        """
        [[step]]
        status = 429
        message = "slow down"
        limit = {resets_in = 3000, utilization = 0.97}
        """,
    )
    ticket = here.dispatch("limited")
    page = here.project.until(ticket, "parked")
    assert page.parked_until is not None
    assert page.ticket.parked_until == page.parked_until
    assert [run.outcome for run in page.runs] == ["limited"]
    status = here.told("status")
    assert (
        f"#{ticket}  play limited  waits for the provider, resumes by itself in" in status.partition("\nWaiting\n")[2]
    )
    assert "it resumes by itself" in here.told("ticket", str(ticket))
    until_seen(here.squad, lambda: here.squad.client.providers().providers[0].limit is not None, "the limit")
    assert "97% of 5h used" in here.told("provider", "list")
    assert "limit of rehearsal: 97% used of 5h" in here.told("doctor")
    here.project.stop(ticket)


LOOKS_AROUND = """
{ env; cat /proc/*/environ | tr '\\0' '\\n'; cat %(data)s/keys/*; cat %(config)s/providers.toml; ls -laR %(data)s;
cat %(data)s/gateway/*.json; cat "$CLAUDE_CONFIG_DIR"/*; } 2>&1 | sed 's/legion-[-_A-Za-z0-9]*/RUN/g' > seen.txt
"""
"""Its own token is no longer than its run; a change that holds it waits for the person."""


def test_a_change_that_holds_the_token_of_its_run_waits_for_the_person(here: Company):
    ticket = spender(here, "leaky", "env | grep -o 'legion-[-_A-Za-z0-9]*' > leaked.txt")
    here.project.until(ticket, "parked")
    (one,) = [one for one in here.squad.client.inbox().questions if one.ticket == ticket]
    assert "- leaked.txt: a token of Legion in line " in one.words
    assert here.project.landed("leaked.txt") is None
    here.project.stop(ticket)


def test_a_planted_key_is_nowhere_but_in_its_own_file_after_a_whole_run(here: Company):
    places = {"data": here.squad.data.root, "config": here.squad.folder}
    ticket = spender(here, "curious", " ".join((LOOKS_AROUND % places).split()))
    here.project.until(ticket, "done")
    here.told("provider", "test", "rehearsal")
    seen = here.project.landed("seen.txt") or ""
    assert "ANTHROPIC_BASE_URL=" in seen
    assert KEY not in seen
    assert "No such file" in seen
    said = [here.told(*words) for words in (("provider", "list"), ("doctor",), ("config",), ("ticket", str(ticket)))]
    events = here.squad.client.status(None).last_event
    told = [next(here.squad.client.events(number)) for number in range(events)]
    assert KEY not in json.dumps([said, told], default=vars)
    holding = [path for path in here.squad.folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert holding == [here.squad.data.keys / "rehearsal"]
