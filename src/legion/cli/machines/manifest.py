"""`legion machine manifest`: prints what runs a machine under systemd, launchd, Docker Compose or Kubernetes."""

from __future__ import annotations

import re

import click

from legion import __version__
from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.cli.base.shapes import MachineManifest
from legion.cli.machines.containers import MachineImage, compose_file, kubernetes_manifest
from legion.cli.machines.supervisors import MachineProgram, launchd_plist, systemd_unit
from legion.wire.errors import BadInput

KINDS = ("systemd", "launchd", "compose", "kubernetes")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


@command("manifest", example="legion machine manifest systemd\nlegion machine manifest kubernetes gpu-1 > gpu-1.yaml")
@click.argument("kind", metavar="KIND", type=click.Choice(KINDS))
@click.argument("name", metavar="[NAME]", default="machine")
@click.option(
    "--program", metavar="PATH", default=".local/bin/legion", help="legion, below the home folder (systemd, launchd)."
)
@click.option("--image", metavar="IMAGE", default="", help="The container's image (compose, kubernetes).")
def manifest(call: CommandCall, kind: str, name: str, program: str, image: str) -> None:
    """Print the file that runs the machine NAME: KIND is systemd, launchd, compose or kubernetes.

    It is for machines that are set up by other programs; by hand, `legion machine join LINE --service` is shorter.
    Each of the files takes the line of an invitation from LEGION_JOIN at its first start.
    """
    text = manifest_text(kind, _machine_name(name), program=program, image=image)
    call.answer(MachineManifest(kind=kind, name=name, text=text), lambda: [text.rstrip("\n")])


def manifest_text(kind: str, name: str, *, program: str, image: str = "") -> str:
    container = MachineImage(name=name, image=image or f"legion-machine:{__version__}", version=__version__)
    match kind:
        case "compose":
            return compose_file(container)
        case "kubernetes":
            return kubernetes_manifest(container)
        case _:
            service = MachineProgram(
                name=name, argv=(program, "join"), log=f"Library/Logs/legion-{name}.log", elsewhere=True
            )
            return launchd_plist(service) if kind == "launchd" else systemd_unit(service)


def _machine_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"`{sanitize(name)[:60]}` is no name of a machine: use small letters, digits and `-`, at most 40 in all."
        )
    return name
