"""The shared test support does what it says, since every room leans on it."""

from __future__ import annotations

import sqlalchemy

from tests.support.sampling import SEED, sampled


def test_a_database_is_empty_and_can_be_written(database_url):
    engine = sqlalchemy.create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("create table only_here (n integer)"))
        connection.execute(sqlalchemy.text("insert into only_here values (1)"))
    assert sqlalchemy.inspect(engine).get_table_names() == ["only_here"]
    engine.dispose()


def test_the_next_database_does_not_see_the_last_one(database_url):
    engine = sqlalchemy.create_engine(database_url)
    assert sqlalchemy.inspect(engine).get_table_names() == []
    engine.dispose()


def test_the_seed_is_the_same_everywhere(seed):
    assert seed == SEED


def test_a_sample_keeps_every_value_and_marks_the_rest_for_soak():
    parameters = sampled(range(20), 3)
    assert [parameter.values[0] for parameter in parameters] == list(range(20))
    assert sum(not parameter.marks for parameter in parameters) == 3
    assert sampled(range(20), 3) == parameters


def test_a_sample_has_one_of_each_kind_before_a_second_of_any():
    parameters = sampled(range(20), 4, kind=lambda value: value % 3)
    kinds = [parameter.values[0] % 3 for parameter in parameters if not parameter.marks]
    assert (len(kinds), set(kinds)) == (4, {0, 1, 2})
