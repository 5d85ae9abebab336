"""What a browser may do that was let in."""

from __future__ import annotations

import pytest

from legion.domain.devices import Device, DeviceRights, is_loopback, rights_of

HERE = ("127.0.0.1", "127.0.0.1:6670", "127.8.9.1:1", "localhost", "localhost:80", "[::1]", "[::1]:6670")
ELSEWHERE = (
    "192.168.1.5:6680",
    "[fe80::1]:6680",
    "example.test",
    "localhost.example.test",
    "127.0.0.1.example.test",
    "",
)


def device(host: str, *, read_only: bool = False) -> Device:
    return Device(id=1, name="phone", host=host, read_only=read_only, made_at=0.0, seen_at=None, revoked_at=None)


@pytest.mark.parametrize("host", HERE)
def test_a_browser_on_this_machine_has_all_rights(host: str):
    assert is_loopback(host)
    assert rights_of(device(host), encrypted=False) is DeviceRights.FULL


@pytest.mark.parametrize("host", ELSEWHERE)
def test_a_browser_elsewhere_is_limited_unless_nobody_can_read_along(host: str):
    assert not is_loopback(host)
    assert rights_of(device(host), encrypted=False) is DeviceRights.LIMITED
    assert rights_of(device(host), encrypted=True) is DeviceRights.FULL


@pytest.mark.parametrize("host", [*HERE, *ELSEWHERE])
@pytest.mark.parametrize("encrypted", [True, False])
def test_a_read_only_device_stays_so_everywhere(host: str, encrypted: bool):
    assert rights_of(device(host, read_only=True), encrypted=encrypted) is DeviceRights.READ_ONLY
