from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.gateways import Running, running
from tests.gateway.upstream import Upstream


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("gateway")
        patch.setenv("LEGION_CONFIG", str(folder / "config.toml"))
        with running(folder / "gateway") as gateway:
            yield gateway


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


@pytest.fixture
def gateway(shared: Running, upstream: Upstream) -> Running:
    """A gateway that several tests share, with this test's upstream as its only provider."""
    shared.provide(upstream.url)
    return shared
