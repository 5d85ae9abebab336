"""The ledger can be read from any position, by several readers, while it grows and after a kill."""

from __future__ import annotations

import json

import pytest

from legion.gateway.accounting import ledger
from legion.gateway.accounting.ledger import LedgerPosition, LimitEntry, RequestEntry, read
from legion.gateway.accounting.meter import Meter, encode
from legion.gateway.accounting.prices import PriceList
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import Pass, grant
from tests.gateway.gateways import everything

LIMIT = LimitEntry(
    at=2.0, run="r", provider="p", status=429, resets_at=3.0, retry_after=None, utilization=0.5, window="5h"
)


def entry(run: str = "r", usd: float | None = 0.25) -> RequestEntry:
    return RequestEntry(
        id="i", at=1.0, run=run, ticket=1, project=1, agent="a", provider="p", model="m", status=200, input=1, output=2,
        cache_read=3, cache_write=4, usd=usd, ms=5, first_ms=None, cut=False, error="",
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path) -> GatewayFolder:
    made = GatewayFolder(tmp_path / "gateway")
    made.prepare()
    return made


def write(folder: GatewayFolder, day: str, *lines: bytes) -> None:
    with (folder.ledger / f"{day}.jsonl").open("ab") as file:
        file.writelines(lines)


def test_nothing_is_read_from_nothing(folder):
    assert read(folder, LedgerPosition()) == ([], LedgerPosition())


def test_lines_have_the_agreed_shape():
    assert json.loads(encode(LIMIT)) == {
        "version": 1,
        "limit": {
            "at": 2.0, "run": "r", "provider": "p", "status": 429, "resets_at": 3.0, "retry_after": None,
            "utilization": 0.5, "window": "5h",
        },
    }  # fmt: skip
    assert json.loads(encode(entry())) == {
        "version": 1, "id": "i", "at": 1.0, "run": "r", "ticket": 1, "project": 1, "agent": "a", "provider": "p",
        "model": "m", "status": 200, "input": 1, "output": 2, "cache_read": 3, "cache_write": 4, "usd": 0.25, "ms": 5,
        "first_ms": None, "cut": False, "error": "",
    }  # fmt: skip


def test_a_reader_goes_on_where_it_was_and_over_midnight(folder):
    write(folder, "2026-11-14", encode(entry("one")), encode(LIMIT))
    lines, position = read(folder, LedgerPosition())
    assert lines == [entry("one"), LIMIT]
    assert read(folder, position) == ([], position)
    write(folder, "2026-11-14", encode(entry("two")))
    write(folder, "2026-11-15", encode(entry("three")))
    lines, position = read(folder, position)
    assert lines == [entry("two")]
    lines, position = read(folder, position)
    assert (lines, position.file) == ([entry("three")], "2026-11-15.jsonl")


def test_half_a_line_is_left_for_the_next_time(folder):
    line = encode(entry())
    write(folder, "2026-11-14", line, line[:30])
    lines, position = read(folder, LedgerPosition())
    assert (len(lines), position.offset) == (1, len(line))
    write(folder, "2026-11-14", line[30:])
    assert read(folder, position)[0] == [entry()]


def test_damaged_lines_and_those_of_a_later_release_are_passed_over(folder):
    later = encode(entry()).replace(b'"version":1', b'"version":2')
    more = encode(entry()).replace(b'"version":1', b'"version":1,"news":7')
    write(folder, "2026-11-14", b"{torn\n", b"\n", b"[]\n", b"7\n", b"\xff\n", later, more, encode(LIMIT))
    lines, position = read(folder, LedgerPosition())
    assert lines == [entry(), LIMIT]
    assert read(folder, position) == ([], position)


@pytest.mark.slow
def test_a_long_ledger_is_read_in_parts(folder):
    line = encode(entry())
    number = ledger._MAX_READ // len(line) + 10
    write(folder, "2026-11-14", *[line] * number)
    assert len(read(folder, LedgerPosition())[0]) < number
    assert len(everything(folder)) == number


def test_a_new_gateway_knows_what_living_runs_have_spent(folder, tmp_path):
    for run in ("living", "cheap"):
        grant(folder, Pass(run=run, ticket=1, project=1, agent="a", provider="p"))
    write(folder, "2020-01-01", encode(entry("living")))  # before the run: another run of that name
    write(folder, "9999-01-01", *[encode(entry("living"))] * 3, encode(entry("cheap", None)), encode(entry("ended")))
    meter = Meter(folder, PriceList(tmp_path / "prices.toml"))
    meter.resume()
    assert [meter.spent(run) for run in ("living", "cheap", "ended")] == [0.75, 0.0, 0.0]


def test_a_line_that_a_kill_tore_off_does_not_spoil_the_next_one(folder, tmp_path):
    write(folder, "9999-01-01", encode(entry()), encode(entry())[:30])
    meter = Meter(folder, PriceList(tmp_path / "prices.toml"))
    meter.resume()
    meter.note(LIMIT)
    meter.write()
    assert everything(folder) == [entry(), LIMIT]


def test_a_clock_that_is_set_back_does_not_hide_lines(folder, tmp_path):
    write(folder, "9999-01-01", encode(entry()))
    _, position = read(folder, LedgerPosition())
    meter = Meter(folder, PriceList(tmp_path / "prices.toml"))
    meter.resume()
    meter.note(LIMIT)
    meter.write()
    assert read(folder, position)[0] == [LIMIT]


def test_a_ledger_that_cannot_be_written_loses_nothing(folder, tmp_path):
    meter = Meter(folder, PriceList(tmp_path / "prices.toml"))
    hidden = folder.ledger.rename(tmp_path / "elsewhere")
    meter.note(LIMIT)
    meter.write()
    hidden.rename(folder.ledger)
    meter.write()
    assert everything(folder) == [LIMIT]
