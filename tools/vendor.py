"""Fetches the libraries of the page by npm and writes them, with their licences, as vendor.toml lists them.

Usage: python tools/vendor.py. Change a version in vendor.toml first; the hashes are written here.
A bare import ("preact") becomes one of the file next to it: a browser finds that without a map.
`replace` and `by` name text that the page's policy would stop in a browser, and what does the same job.
"""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src/legion/web"
LIST = ROOT / "vendor.toml"
HEAD = "# Libraries of the page, as published. `python tools/vendor.py` writes the files and their hashes.\n"


def main() -> None:
    libraries = tomllib.loads(LIST.read_text())["library"]
    names = {each["import"]: each["file"] for each in libraries}
    lines, licences = [HEAD], {}
    with tempfile.TemporaryDirectory() as scratch:
        for each in libraries:
            wanted = f"{each['package']}@{each['version']}"
            packed = subprocess.run(
                ["npm", "pack", "--silent", wanted], cwd=scratch, check=True, capture_output=True, text=True
            ).stdout.split()[-1]
            with tarfile.open(Path(scratch) / packed) as archive:
                source = _read(archive, f"package/{each['source']}")
                licences[wanted] = _read(archive, "package/LICENSE").decode()
            text = source.decode()
            for old, new in zip(each.get("replace", ()), each.get("by", ()), strict=True):
                assert text.count(old) == 1, f"{wanted}: this is not in it once: {old}"
                text = text.replace(old, new)
            for name, file in names.items():
                text = text.replace(f'from"{name}"', f'from"./{file}"')
            text = "".join(
                line for line in text.splitlines(keepends=True) if not line.startswith("//# sourceMappingURL")
            )
            text = text.split("//# sourceMappingURL")[0]
            (ROOT / "static/vendor" / each["file"]).write_text(text)
            entry = {**each, "sha256": hashlib.sha256(text.encode()).hexdigest()}
            lines.append("\n[[library]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in entry.items()))
    notices = "\n".join(f"{'=' * 20} {name}\n\n{text.strip()}\n" for name, text in licences.items())
    (ROOT / "static/vendor/LICENSES.txt").write_text(notices)
    LIST.write_text("".join(lines))


def _toml(value: str | list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml(one) for one in value)}]"
    return f"'{value}'" if '"' in value else f'"{value}"'


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, name
    return file.read()


if __name__ == "__main__":
    main()
