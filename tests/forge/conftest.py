from __future__ import annotations

import pytest

from tests.forge.hosting import hosting
from tests.support.repository import Repository


@pytest.fixture
def shop(tmp_path):
    """A repository that is also at the stand-in."""
    return Repository(tmp_path / "shop")


@pytest.fixture
def stand_in(tmp_path, shop):
    with hosting(tmp_path, shop.root) as running:
        yield running
