"""`legion usage` over a real daemon: what landed, what was wasted, and what plain programs took."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.scenarios.test_spending import MODEL, spender
from tests.support.legion import Project
from tests.support.looking import until_seen
from tests.support.models import Company, company


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("usage"), stand_in=True) as one:
        yield one


def test_money_of_attempts_that_did_not_land_is_waste_and_every_cut_has_the_same_sum(here: Company):
    agent = 'if [ "$LEGION_ATTEMPT" = 1 ]; then echo BROKEN > a.txt; else echo fine > a.txt; fi'
    ticket = spender(here, "twice", agent, epic="login")
    here.project.until(ticket, "done")
    counted = "the count of its requests"
    until_seen(here.squad, lambda: here.squad.client.usage(here.project.cwd).total.usage.requests >= 3, counted)
    by_ticket = here.squad.client.usage(here.project.cwd)
    (share,) = by_ticket.shares
    assert (share.key, share.title, share.runs, share.landed, share.wasted_runs) == (
        str(ticket), "play twice", 2, 1, 1,
    )  # fmt: skip
    assert 0 < share.wasted.usd < share.usage.usd
    assert share.usd_per_landed == share.usage.usd
    for by, key in (("agent", f"agent of ticket {ticket}"), ("model", MODEL), ("epic", "login")):
        cut = here.squad.client.usage(here.project.cwd, by)
        assert key in [one.key for one in cut.shares]
        assert cut.total == by_ticket.total
    shown = here.told("usage")
    assert f"#{ticket}  play twice" in shown
    assert "in 1 run" in shown
    assert json.loads(here.told("usage", "--by", "day", "--json"))["schema"] == "legion.usage/1"


def test_plain_programs_cost_time_and_a_stopped_ticket_wasted_all_of_it(project: Project):
    done = project.dispatch("good", "echo a > a.txt")
    failed = project.dispatch("bad", "echo BROKEN > b.txt", max_attempts=2)
    project.until_settled()
    shares = {share.key: share for share in project.squad.client.usage(project.cwd).shares}
    assert (shares[str(done)].landed, shares[str(done)].wasted_runs) == (1, 0)
    assert (shares[str(failed)].landed, shares[str(failed)].runs, shares[str(failed)].wasted_runs) == (0, 2, 2)
    assert shares[str(failed)].wasted_seconds == shares[str(failed)].seconds > 0
