from __future__ import annotations

import pytest

from tests.forge.desk import CONFIG, Desk
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


@pytest.fixture
def desk(tmp_path):
    """A Legion without a daemon, connected to a stand-in: `desk.forge`."""
    shop = Repository(tmp_path / "shop", CONFIG)
    (tmp_path / "forge").mkdir()
    with hosting(tmp_path / "forge", shop.root) as forge:
        one = Desk(tmp_path / "legion", shop)
        yield one.connect(forge)
        one.close()
