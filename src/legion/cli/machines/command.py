"""`legion machine`: the group of commands about one machine."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass

import click

from legion import __version__
from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import clock, sanitize
from legion.cli.base.row_command import row_command
from legion.cli.base.shapes import MachineManifest
from legion.client.text.machines import log_rows, rows
from legion.system.supervisors import SupervisedProgram, launchd_plist, systemd_unit
from legion.wire.errors import BadInput
from legion.wire.machines import MachineInvitation, MachineRows

DATA = "/data"
GRACE_SECONDS = 90


@dataclass(frozen=True, kw_only=True)
class MachineImage:
    """A machine in a container."""

    name: str
    image: str
    version: str
    """Of Legion, to build the image."""


def compose_file(machine: MachineImage) -> str:
    """A file for `docker compose`; it builds the image, too."""
    return _COMPOSE.format(
        name=machine.name, image=_quoted(machine.image), version=machine.version, data=DATA, grace=GRACE_SECONDS
    )


def kubernetes_manifest(machine: MachineImage) -> str:
    """A Secret with the invitation and a StatefulSet of one pod: a machine is one identity with one folder."""
    return _KUBERNETES.format(
        name=f"legion-{machine.name}", image=_quoted(machine.image), data=DATA, grace=GRACE_SECONDS
    )


def _quoted(text: str) -> str:
    """JSON's strings are YAML's."""
    return json.dumps(text)


_COMPOSE = """\
# A Legion machine as a container. On the head, `legion machine invite {name}` prints a line; write it into a file .env
# in this folder as LEGION_JOIN='LINE' and run `docker compose up -d --build`. The line works once; later starts use
# what is stored in the volume. Agents keep their own sandbox inside the container: bubblewrap makes namespaces, which
# needs the three security options.
services:
  machine:
    image: {image}
    build:
      context: .
      dockerfile_inline: |
        FROM python:3.13-slim
        RUN apt-get update \\
            && apt-get install -y --no-install-recommends bubblewrap git \\
            && rm -rf /var/lib/apt/lists/*
        RUN pip install --no-cache-dir legionary=={version}
        RUN useradd --create-home legion && install -d -o legion -g legion {data}
        USER legion
        WORKDIR /home/legion
    command: ["legion", "--data-dir", "{data}", "machine", "join", "--stay"]
    environment:
      LEGION_JOIN: ${{LEGION_JOIN:-}}
    init: true
    restart: unless-stopped
    stop_grace_period: {grace}s
    security_opt:
      - seccomp=unconfined
      - apparmor=unconfined
      - systempaths=unconfined
    volumes:
      - data:{data}
volumes:
  data:
"""

_KUBERNETES = """\
# A Legion machine as a pod. Replace LINE by the line that `legion machine invite` printed on the head, then run
# `kubectl apply -f` with this file. The line works once; later starts use what is stored in the volume. The image needs
# legion, git and bubblewrap for the user 1000: `legion machine manifest compose` has the lines that build one. Agents
# keep their own sandbox inside the pod: bubblewrap makes namespaces, which needs hostUsers: false (Kubernetes 1.33)
# and the two settings of the security context.
apiVersion: v1
kind: Secret
metadata:
  name: {name}
stringData:
  LEGION_JOIN: "LINE"
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {name}
spec:
  serviceName: {name}
  replicas: 1
  selector:
    matchLabels:
      app: {name}
  template:
    metadata:
      labels:
        app: {name}
    spec:
      hostUsers: false
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: {grace}
      securityContext:
        runAsUser: 1000
        runAsGroup: 1000
        fsGroup: 1000
      containers:
        - name: machine
          image: {image}
          command: ["legion", "--data-dir", "{data}", "machine", "join", "--stay"]
          envFrom:
            - secretRef:
                name: {name}
          securityContext:
            procMount: Unmasked
            seccompProfile:
              type: Unconfined
          resources:
            requests:
              cpu: "2"
              memory: 4Gi
          volumeMounts:
            - name: data
              mountPath: {data}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: ["ReadWriteOnce"]
        resources:
          requests:
            storage: 50Gi
"""


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
            service = SupervisedProgram(
                name=name, argv=(program, "join"), log=f"Library/Logs/legion-{name}.log", elsewhere=True
            )
            return launchd_plist(service) if kind == "launchd" else systemd_unit(service)


def _machine_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"`{sanitize(name)[:60]}` is no name of a machine: use small letters, digits and `-`, at most 40 in all."
        )
    return name


_INVITE = """\
legion machine invite desk --host 192.0.2.10
legion machine invite gpu-1 --labels gpu,cuda --slots 8 --quiet-hours 22:00-07:00"""
_LOG = "legion machine log desk\nlegion machine log desk -n 200"
_REMOVE = "legion machine remove desk\nlegion machine remove stolen-laptop --yes"
_RUNS = click.IntRange(1, 1000)
_LAST = click.Option(["-n", "limit"], type=_RUNS, default=50, show_default=True, help="How many runs.")


def _line(made: MachineInvitation) -> list[str]:
    return [f"legion machine join {shlex.quote(made.line)}"]


def _say_until(call: CommandCall, made: MachineInvitation) -> None:
    call.say(f"Run this on {sanitize(made.name)} before {clock(made.ends_at)}; --service there keeps it running.")


_list = row_command("list", MachineRows.machines, "legion machine list\nlegion machine list --json", shows=rows)
machine = group(
    "machine",
    """Machines that work for this Legion: list, invite, pause, resume, drain, update, remove, log.

A machine dials in to this Legion, the head; nothing has to be reachable on the machine.
""",
    "legion machine invite desk --host 192.0.2.10\nlegion machine list\nlegion machine pause desk",
    _list,
    row_command("invite", MachineRows.invite_machine, _INVITE, says=_line, then=_say_until),
    row_command("pause", MachineRows.pause_machine, "legion machine pause desk"),
    row_command("resume", MachineRows.resume_machine, "legion machine resume desk"),
    row_command("drain", MachineRows.drain_machine, "legion machine drain desk"),
    row_command("update", MachineRows.update_machine, "legion machine update desk"),
    row_command("remove", MachineRows.remove_machine, _REMOVE),
    row_command("log", MachineRows.machine_log, _LOG, _LAST, shows=log_rows),
    manifest,
    alone=_list,
)
