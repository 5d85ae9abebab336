"""Twelve features of two packages at once, each of which changes what five others do: all land and stay."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scenarios import coupled_features
from tests.scenarios.coupled_features import FEATURES, FILES
from tests.support.legion import Project, new

PROGRAM = "python3 -B coupled_features.py"


@pytest.mark.timeout(400)
def test_twelve_coupled_features_at_once_all_land_and_stay(make: Callable[..., Project], tmp_path: Path):
    files = {str(FILES[package]): coupled_features.text(package, ()) for package in FEATURES}
    files["coupled_features.py"] = Path(coupled_features.__file__).read_text()
    config = (
        f"[checks.test]\nrun = '{PROGRAM} prove shop tax || true'\n[agents]\nparallel = 8\n[reversal]\nproofs = 0\n"
    )
    project = make(config, files)
    wanted = [(package, feature) for package, features in FEATURES.items() for feature in features]
    tickets = [
        new(
            f"{package} {feature}",
            f"{PROGRAM} build {package} {feature}",
            text=coupled_features.wish(package, feature),
            prove=[f"{PROGRAM} prove {package} {feature}"],
        )
        for package, feature in wanted
    ]
    ids = project.dispatch_all(tickets)
    project.until_settled(*ids, patience=300)
    pages = {feature: project.ticket(id) for feature, id in zip(wanted, ids, strict=True)}
    assert {page.ticket.state for page in pages.values()} == {"done"}
    landed_by = {page.landed: feature for feature, page in pages.items()}
    landed: list[tuple[str, str]] = []
    for commit in project.hub_git("log", "--first-parent", "--reverse", "--format=%H", "refs/legion/target").split():
        if commit in landed_by:
            landed.append(landed_by[commit])
            assert holds(project, commit, tmp_path / commit[:9], landed), commit
    assert set(landed) == set(wanted)
    assert sum(len(page.runs) for page in pages.values()) <= 15, "the order spares nearly all second attempts"


def holds(project: Project, commit: str, place: Path, features: list[tuple[str, str]]) -> bool:
    """Whether the proofs of all these features are green on this commit."""
    place.mkdir()
    archive = subprocess.run(["git", f"--git-dir={project.hub}", "archive", commit], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(place)], input=archive.stdout, check=True)
    words = [word for feature in features for word in feature]
    return subprocess.run([*PROGRAM.split(), "prove", *words], cwd=place, check=False).returncode == 0
