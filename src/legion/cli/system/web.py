"""`legion web`: opens the page in a browser or on a phone, and manages the browsers that are let in."""

from __future__ import annotations

import os
import socket
import sys
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click

from legion.cli.base.command import CommandCall, command, common_options, make_call
from legion.cli.base.output import duration, sanitize
from legion.client.discovery import OWN_NAMES, is_remote, read_record
from legion.system.paths import DataDir
from legion.wire.errors import BadInput, LegionError
from legion.wire.web import DeviceLine, OfferDevice, OpenWeb, RevokeDevice, WebAddresses, WebLink

_EXAMPLE = "\b\nExample:\n  legion web\n  legion web --phone\n  legion web devices\n  legion web revoke 2"


@click.group("web", invoke_without_command=True, context_settings={"help_option_names": ["--help"]}, epilog=_EXAMPLE)
@click.option("--phone", is_flag=True, help="For a device on the same network: its address and a QR code.")
@click.option(
    "-p",
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="Serve it under this port, too; on this machine alone without --phone or --host.",
)
@click.option("-h", "--host", metavar="ADDRESS", help="Serve it under this address of this machine, too.")
@click.option("--tls", is_flag=True, help="Encrypt it, with a certificate of Legion's own.")
@click.option("--behind", default="", metavar="NAME", help="A proxy such as `tailscale serve` serves it as NAME.")
@click.option("--read-only", is_flag=True, help="The device can look and not act.")
@click.option("--name", default="", metavar="NAME", help="How the device is listed.")
@click.option("--no-open", is_flag=True, help="Only print the link.")
@common_options
@click.pass_context
def web(
    ctx: click.Context,
    phone: bool,
    port: int | None,
    host: str | None,
    tls: bool,
    behind: str,
    read_only: bool,
    name: str,
    no_open: bool,
    json: bool,
    data_dir: Path | None,
    no_color: bool,
    on_session: str,
) -> None:
    """Open Legion's page. The link lets one browser in, once, within two minutes."""
    if ctx.invoked_subcommand is not None:
        return
    call = make_call(json=json, data_dir=data_dir, no_color=no_color, session=on_session)
    if is_remote():
        raise BadInput("LEGION_URL names a daemon that runs elsewhere; run `legion web` there.")
    legion = call.legion()
    if behind or phone or host or tls or port:
        elsewhere = phone or tls or bool(behind)
        chosen = host or (_own_address() if elsewhere else "127.0.0.1")
        wanted = OpenWeb(host=chosen, port=port or 0, tls=tls, behind=behind)
        if wanted.host in OWN_NAMES and not elsewhere and not port:
            raise BadInput("This machine's own address is always served; name another with --host, or use --phone.")
        addresses = legion.open_web(wanted)
        base = addresses.more[0]
    else:
        addresses = WebAddresses(local=_local(call))
        base = addresses.local
    offer = legion.offer_device(OfferDevice(name=name, read_only=read_only))
    link = WebLink(url=f"{base}/#code={offer.code}", ends_at=offer.ends_at)
    call.answer(link, lambda: _shown(call, link, addresses, base, qr=phone or bool(behind)))
    if not (no_open or phone or behind or call.json or (host and host not in OWN_NAMES)) and _has_screen():
        webbrowser.open(link.url)


def _shown(call: CommandCall, link: WebLink, addresses: WebAddresses, base: str, *, qr: bool) -> Iterator[str]:
    if qr and sys.stdout.isatty():
        yield from _qr(link.url)
    yield link.url
    call.say("It lets one browser in, once, within two minutes. `legion web devices` lists those that are in.")
    if addresses.proxied:
        call.say(
            f"Let your proxy forward to {addresses.proxied}, for example: tailscale serve --bg {addresses.proxied}"
        )
    elif addresses.fingerprint:
        call.say(
            f"Encrypted with a certificate of Legion's own. Install {DataDir(call.data_dir).root}/web/authority.pem on "
            f"the device, or accept the browser's warning after comparing: {addresses.fingerprint}"
        )
    elif base.startswith("http://") and addresses.more and _host(base) not in OWN_NAMES:
        call.say(
            "Note: this address is not encrypted. Others on the network can read what you see there and use the page "
            "as you; what decides which programs run on this machine is closed there. `legion web --tls` encrypts it, "
            "and so does `tailscale serve` with `legion web --behind NAME`. `legion web close` ends it."
        )


@command("devices", example="legion web devices")
def devices(call: CommandCall) -> None:
    """The browsers that are let in."""
    found = call.legion().devices()

    def lines() -> Iterator[str]:
        if not found.devices:
            yield "No browser is let in; `legion web` opens the page in one."
        for one in found.devices:
            yield _line(one)

    call.answer(found, lines)


@command("revoke", example="legion web revoke 2\nlegion web revoke --all")
@click.argument("id", type=click.IntRange(min=1), metavar="DEVICE", required=False)
@click.option("--all", "every", is_flag=True, help="Every browser, and links that were not opened yet.")
def revoke(call: CommandCall, id: int | None, every: bool) -> None:
    """Shut a browser out at once."""
    if (id is None) != every:
        raise BadInput("Name one device, as `legion web devices` lists them, or --all.")
    done = call.legion().revoke_device(RevokeDevice(id=id))
    call.answer(done, lambda: [done.message])


@command("close", example="legion web close")
def close(call: CommandCall) -> None:
    """Serve the page on this machine only."""
    addresses = call.legion().close_web()
    call.answer(addresses, lambda: [f"The page is served on this machine only: {addresses.local}"])


def _line(one: DeviceLine) -> str:
    seen = "never" if one.seen_at is None else f"{duration(max(0.0, time.time() - one.seen_at))} ago"
    rights = ", read-only" if one.read_only else ""
    return f"{one.id:>3}  {sanitize(one.name) or 'unnamed'}{rights}  at {sanitize(one.host)}, seen {seen}"


def _local(call: CommandCall) -> str:
    record = read_record(call.data_dir)
    if record is None or not record.mcp:
        raise LegionError("The daemon wrote no address of its page; restart it with `legion down` and `legion up`.")
    return record.mcp.rpartition("/")[0]


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _own_address() -> str:
    """This machine's address in its network. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            raise BadInput("This machine is in no network; name an address of it with --host.") from None
        return str(probe.getsockname()[0])


def _has_screen() -> bool:
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _qr(text: str) -> list[str]:
    """Two modules a character, dark on light: a camera reads it on any terminal's colours."""
    import segno

    rows = [[bool(module) for module in row] for row in segno.make(text, error="l").matrix_iter(border=2)]
    if len(rows) % 2:
        rows.append([False] * len(rows[0]))
    half = {(False, False): "█", (True, True): " ", (False, True): "▀", (True, False): "▄"}
    return ["".join(half[pair] for pair in zip(*two, strict=True)) for two in zip(rows[::2], rows[1::2], strict=True)]


for _one in (devices, revoke, close):
    web.add_command(_one)
