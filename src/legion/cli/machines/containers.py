"""The texts with which Docker Compose and Kubernetes run a machine: pure functions of its name and its image."""

from __future__ import annotations

import json
from dataclasses import dataclass

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
        name=machine.name,
        image=_quoted(machine.image),
        version=machine.version,
        data=DATA,
        grace=GRACE_SECONDS,
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
