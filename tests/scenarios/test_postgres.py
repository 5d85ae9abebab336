"""The same scenarios on Postgres: a representative part of them, word for word. `make test` draws some of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scenarios.conftest import settings_with_gates
from tests.scenarios.test_acting import (
    test_a_paused_ticket_goes_on_with_the_same_attempt_in_the_same_tree as test_a_paused_ticket_goes_on,
)
from tests.scenarios.test_acting import (
    test_a_stopped_ticket_keeps_its_files_and_a_retry_goes_on_in_them as test_a_stopped_ticket_keeps_its_files,
)
from tests.scenarios.test_acting import (
    test_a_ticket_stopped_in_the_merge_queue_does_not_land_and_its_companion_does as test_a_ticket_stopped_late,
)
from tests.scenarios.test_bad_input import (
    test_any_title_goes_through_to_the_landed_commit_and_to_no_terminal_as_it_is as test_any_title_goes_through,
)
from tests.scenarios.test_landing import test_one_bad_change_does_not_hold_up_the_others as test_one_bad_change
from tests.scenarios.test_landing import (
    test_two_that_touch_the_same_lines_both_land_after_one_resolves as test_two_that_touch_the_same_lines,
)
from tests.scenarios.test_proof import (
    test_what_comes_after_a_red_checkpoint_waits_and_a_retry_frees_it as test_a_red_checkpoint,
)
from tests.scenarios.test_target import red as red
from tests.scenarios.test_target import (
    test_a_red_baseline_blames_no_ticket_and_one_that_mends_it_lands_and_wakes_the_others as test_a_red_baseline,
)
from tests.scenarios.test_trust import (
    test_a_landed_change_of_legion_toml_stops_everything_until_it_is_trusted_again as test_trust_is_asked_again,
)
from tests.service.test_bad_input import (
    test_a_repeated_request_answers_with_the_first_result as test_a_repeated_request,
)
from tests.service.test_bad_input import (
    test_texts_that_are_too_long_or_no_text_at_all_are_refused as test_no_text_at_all_is_refused,
)
from tests.support.legion import Squad, squad
from tests.support.migrated import migrated_database
from tests.support.sampling import sampled

__all__ = [
    "red",
    "test_a_paused_ticket_goes_on",
    "test_a_red_baseline",
    "test_a_red_checkpoint",
    "test_a_repeated_request",
    "test_a_stopped_ticket_keeps_its_files",
    "test_a_ticket_stopped_late",
    "test_any_title_goes_through",
    "test_no_text_at_all_is_refused",
    "test_one_bad_change",
    "test_trust_is_asked_again",
    "test_two_that_touch_the_same_lines",
]

WITH_RUNS = (
    *("test_a_paused_ticket_goes_on", "test_a_red_baseline", "test_a_red_checkpoint"),
    *("test_a_stopped_ticket_keeps_its_files", "test_a_ticket_stopped_late", "test_any_title_goes_through"),
    *("test_one_bad_change", "test_trust_is_asked_again", "test_two_that_touch_the_same_lines"),
)
"""What they ask of a database, `tests/store` asks of Postgres each time."""
MARKS = {one.values[0]: one.marks for one in sampled(WITH_RUNS, 3)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The functions are those of other files, so the mark is on a parameter."""
    metafunc.fixturenames.append("drawn")
    metafunc.parametrize("drawn", [pytest.param(None, marks=MARKS.get(metafunc.definition.name, ()), id="postgres")])


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Squad]:
    """In the place of the shared daemon: one whose state lies in Postgres."""
    folder = tmp_path_factory.mktemp("postgres-house")
    with migrated_database() as url, squad(folder, settings=settings_with_gates(folder), database=url) as one:
        yield one


def test_the_state_lies_in_postgres(house: Squad):
    store = next(finding for finding in house.client.doctor(None).findings if finding.name == "store")
    assert "postgres" in store.detail
    assert not house.data.database.exists()
