"""A stand-in of GitHub with the repository acme/shop, its people, and the real `gh` as an independent client."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from legion.demo.forge.server import make_bare, serving
from legion.demo.forge.state import Hosted
from tests.forge.gh_queries import answer
from tests.support.github_app import StandIn

OWNER, WRITER, READER, STRANGER, ROBOT = "acme", "wanda", "rita", "sam", "legion-bot"
TOKENS = {"owner-token": OWNER, "robot-token": ROBOT, "reader-token": READER, "stranger-token": STRANGER}
GH = shutil.which("gh")


@contextlib.contextmanager
def hosting(folder: Path, source: Path) -> Iterator[StandIn]:
    hosted = Hosted(OWNER, "shop", make_bare(source, folder / "shop.git"))
    hosted.rights |= {WRITER: "write", READER: "read", ROBOT: "write"}
    with serving(StandIn(hosted=hosted, tokens=dict(TOKENS), graphql=answer)) as stand_in:
        yield stand_in


def gh(stand_in: StandIn, *args: str, folder: Path, token: str = "owner-token") -> str:
    """What the program prints. It reaches the stand-in as a proxy, since it asks `github.localhost` over plain HTTP."""
    assert GH is not None
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GH_HOST": "github.localhost",
        "GH_TOKEN": token,
        "GH_ENTERPRISE_TOKEN": token,
        "GH_REPO": f"github.localhost/{stand_in.hosted.full_name}",
        "GH_NO_UPDATE_NOTIFIER": "1",
        "http_proxy": stand_in.url,
    }
    done = subprocess.run((GH, *args), env=env, cwd=folder, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
