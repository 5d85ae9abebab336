"""A conversation is given back also where the daemon ended while the person held it."""

from __future__ import annotations

from typing import cast

import pytest

from legion.cli.attach.relay import given_back
from legion.cli.base.command import CommandCall
from legion.client.http import NotRunning, Unanswered
from legion.client.legion import Legion
from legion.wire.projects import Done


class _Call:
    """A command whose daemon is gone until it is started again."""

    def __init__(self) -> None:
        self.starts = 0

    def legion(self) -> Legion:
        return cast(Legion, self)

    def again_or_start(self) -> None:
        self.starts += 1


@pytest.mark.parametrize("gone", [NotRunning("gone"), Unanswered("gone")], ids=["ended", "in-the-middle"])
def test_the_daemon_is_started_again_once(gone: NotRunning):
    call = _Call()

    def give(legion: Legion) -> Done:
        if call.starts == 0:
            raise gone
        return Done(message="It works alone again.")

    assert given_back(cast(CommandCall, call), give) == "It works alone again."
    assert call.starts == 1


def test_a_daemon_that_cannot_be_started_is_reported():
    def give(legion: Legion) -> Done:
        raise NotRunning("gone")

    with pytest.raises(NotRunning):
        given_back(cast(CommandCall, _Call()), give)
