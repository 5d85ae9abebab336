"""`make release`: what is published, made from the last commit into dist/.

The wheel and the source package are built twice, in two folders and at two times, and must be equal byte by byte. With
them come a Debian package, checksums and an SBOM (CycloneDX) of the locked dependencies. `trial.py` installs them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from legion.system.supervisors import SupervisedProgram, systemd_unit

ROOT = Path(__file__).resolve().parent.parent.parent
DIST = ROOT / "dist"
BIN = Path(sys.executable).parent
IN_WHEEL = re.compile(r"(legion/|legionary-[^/]+\.dist-info/)")
IN_SOURCE = re.compile(
    r"legionary-[^/]+/(src/legion/|(CHANGELOG|README|SECURITY)\.md$|LICENSE$|PKG-INFO$|pyproject\.toml$|\.gitignore$)"
)
LARGEST = 4_000_000
"""Bytes of a package: more means that something came in that does not belong there."""


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    made = [_twice(kind) for kind in ("wheel", "sdist")]
    _only(made[0], IN_WHEEL, zipfile.ZipFile(made[0]).namelist())
    with tarfile.open(made[1]) as source:
        _only(made[1], IN_SOURCE, source.getnames())
    version = made[0].name.split("-")[1]
    made.append(_bill_of_materials(version))
    if shutil.which("dpkg-deb"):
        made.append(_debian(version, made[0]))
    else:
        sys.stdout.write("Left out: the Debian package, for which dpkg-deb is missing.\n")
    sums = [f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}" for one in made]
    (DIST / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    for one in made:
        sys.stdout.write(f"{one.stat().st_size:>12,}  dist/{one.name}\n")


def _twice(kind: str) -> Path:
    first, second = _built(kind, umask=0o022), _built(kind, umask=0o077)
    if first.read_bytes() != second.read_bytes():
        raise SystemExit(f"Two builds of {first.name} differ: nothing that depends on time or folder may be in it.")
    if first.stat().st_size > LARGEST:
        raise SystemExit(f"{first.name} has {first.stat().st_size:,} bytes, more than {LARGEST:,}.")
    return Path(shutil.move(first, DIST / first.name))


def _built(kind: str, *, umask: int) -> Path:
    """From the commit alone, so that no file of the person's checkout gets in."""
    folder = Path(tempfile.mkdtemp(prefix="release-"))
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True, umask=umask)
    time = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, check=True, text=True)
    env = os.environ | {"SOURCE_DATE_EPOCH": time.stdout.strip()}
    subprocess.run([str(BIN / "hatchling"), "build", "-t", kind], cwd=folder, env=env, check=True, capture_output=True)
    return next((folder / "dist").iterdir())


def _only(package: Path, allowed: re.Pattern[str], names: list[str]) -> None:
    others = [name for name in names if not allowed.match(name) and not name.endswith("/")]
    if others:
        raise SystemExit(f"{package.name} has files that do not belong there: {', '.join(others[:9])}")


def _locked() -> list[tuple[str, str, list[str]]]:
    """Name, version and hashes of each locked dependency."""
    text = (ROOT / "requirements.lock").read_text()
    found = re.findall(r"^([\w.\-]+)(?:\[[^\]]*\])?==(\S+)((?:.*\\\n(?:\s+--hash=sha256:\w+.*\n?)+))", text, re.M)
    return [(name, version, re.findall(r"sha256:(\w+)", rest)) for name, version, rest in found]


def _bill_of_materials(version: str) -> Path:
    components = [
        {
            "type": "library",
            "name": name,
            "version": locked,
            "purl": f"pkg:pypi/{name}@{locked}",
            "hashes": [{"alg": "SHA-256", "content": one} for one in hashes],
        }
        for name, locked, hashes in _locked()
    ]
    own = {"type": "application", "name": "legionary", "version": version, "purl": f"pkg:pypi/legionary@{version}"}
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
    }
    path = DIST / f"legionary-{version}.cdx.json"
    path.write_text(json.dumps(bill, indent=1) + "\n")
    return path


def _debian(version: str, wheel: Path) -> Path:
    """The wheel and those of its dependencies; the virtual environment is made of them where it is installed.

    The agent SDK is taken without the Claude Code that its wheels carry (a hundred megabytes): the person's is used.
    """
    staging = Path(tempfile.mkdtemp(prefix="debian-"))
    wheels = staging / "opt/legionary/wheels"
    wheels.mkdir(parents=True)
    python = os.environ.get("DEBIAN_PYTHON", "/usr/bin/python3")
    _wheels_of_lock(python, wheels)
    shutil.copy(wheel, wheels)
    (staging / "opt/legionary/requirements.lock").write_bytes((ROOT / "requirements.lock").read_bytes())
    shared = Path(__file__).parent / "debian"
    control = staging / "DEBIAN"
    control.mkdir()
    size = sum(one.stat().st_size for one in staging.rglob("*") if one.is_file()) // 1024
    minor = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True, check=True
    ).stdout.strip()
    machine = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()
    words = {"VERSION": version, "SIZE": str(size), "PYTHON": minor, "ARCHITECTURE": machine}
    text = (shared / "control").read_text()
    (control / "control").write_text(re.sub(r"@(\w+)@", lambda found: words[found[1]], text))
    for name in ("postinst", "prerm"):
        shutil.copy(shared / name, control / name)
        (control / name).chmod(0o755)
    _shared_files(staging)
    path = DIST / f"legionary_{version}_{machine}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", str(staging), str(path)], check=True, capture_output=True
    )
    shutil.rmtree(staging)
    return path


def _wheels_of_lock(python: str, folder: Path) -> None:
    """As wheels for that Python. The SDK is built from its source package, which has no program in it."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = Path(scratch) / "venv"
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        pip = (str(environment / "bin/pip"), "wheel", "--quiet", "--no-deps", "--require-hashes", "-w", str(folder))
        words = ("--no-binary", "claude-agent-sdk", "-r", str(ROOT / "requirements.lock"))
        subprocess.run([*pip, *words], check=True, stderr=subprocess.DEVNULL)


def _shared_files(staging: Path) -> None:
    """The manual, the completions, and the service of the person's own systemd."""
    unit = SupervisedProgram(name="", argv=("/usr/bin/legion", "serve"))
    _write(staging / "usr/lib/systemd/user/legion.service", systemd_unit(unit))
    for shell, place in (
        ("bash", "bash-completion/completions/legion"),
        ("zsh", "zsh/vendor-completions/_legion"),
        ("fish", "fish/vendor_completions.d/legion.fish"),
    ):
        done = subprocess.run(
            [str(BIN / "legion"), "config", "completion", shell], capture_output=True, text=True, check=True
        )
        _write(staging / "usr/share" / place, done.stdout)
    manual = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "manual.py")], capture_output=True, check=True
    ).stdout
    page = staging / "usr/share/man/man1/legion.1.gz"
    page.parent.mkdir(parents=True)
    page.write_bytes(gzip.compress(manual, mtime=0))
    _write(staging / "usr/share/doc/legionary/copyright", (ROOT / "LICENSE").read_text())
    link = staging / "usr/bin/legion"
    link.parent.mkdir(parents=True)
    link.symlink_to("/opt/legionary/venv/bin/legion")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    main()
