"""No path is built from a request: where a room that is asked makes a path, its parts are constants or listed here.

A name that comes with a request is looked up in a table of what exists, or read with `system/safe_files.py`. Such a
room has no other way to a file than `pathlib` and the calls that are listed here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from tests.support.codebase import SOURCE, files_with, place, python_files, tree

ASKED = ("api", "service", "gateway", "machine", "jobs/machine_runs")
"""Rooms that answer requests of browsers, agents, machines, or the head."""
ROW_FOLDERS = {"root", "common_dir", "worktrees"}
"""Folders in the row of a project, written when the person added it."""
LISTED = {
    "a run's folder, by the name in its row": (
        "context.data.runs / run.name",
        "context.data.runs / turn.name",
        "context.data.runs / one.name",
        "self._context.data.runs / turn.name",
    ),
    "a worktree, by the number of its ticket": (
        "project.agents / latest.seat",
        "project.agents / ticket_seat(ticket_id)",
        "roots[ticket.project] / ticket_seat(ticket.id)",
        "Path(root) / ticket_seat(number)",
        "Path(root)",
        "project.folder / 'looks' / worktree_name(ticket.id)",
        "Path(worktree)",
    ),
    "a name that Legion makes here": (
        "folder.with_name(f'{folder.name}-{number}')",
        "path.with_name(f'{path.name}.removed')",
        "context.data.keys / f'forge-hook-{project}'",
        "context.data.runs / f'shell-{ticket.project}-{time.time_ns()}-{os.urandom(3).hex()}'",
        "files.move_to_trash(project.folder, context.data.root / 'trash') / project.hub.path.name",
    ),
    "a name with letters, digits and dashes only, compared before": (
        "context.data.runs / name",
        "context.data.keys / name",
        "folder / f'{name}.toml'",
        "Path(default.worktrees) / f'@{name}'",
    ),
    "the output of a receipt, by its row; it is shown, not read": ("context.data.root / receipt.output",),
    "shown, not read": ("Path(record.root) / file", "Path(text.file)", "Path(config)"),
    "a conversation of the person's programs, found by Legion's own search": ("Path(facts.folder)", "Path(found.path)"),
    "where the person is; only compared with folders of projects": (
        "Path(cwd)",
        "Path(registry.find(context, cwd).common_dir)",
    ),
    "a folder that the person makes a project, or imports from": ("Path(request.path)", "Path(one.folder)"),
    "a file of a key that the person names; the gateway reads it": ("Path(wanted.key_file)",),
    "a program or file that the person's own settings name": (
        "Path(program.program.run[0])",
        "Path(word)",
        "Path(user.origin)",
    ),
    "a socket that Legion has just opened": ("Path(opened.socket)",),
    "from the table of the page's files": ("Path(folder, name)",),
}
_APPEND = "os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC"
LISTED_IN = {
    "gateway": (
        "Path(provider.key.where)",  # what the person's settings name
        "folder.passes / f'{digest}.json'",
        "folder.tapes / f'{recorder.run}.jsonl'",  # the name in a pass, compared before
        "folder.tapes / f'{run}.jsonl'",
        "os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)",
        f"os.open(path, {_APPEND}, 384)",
        f"os.open(folder.log, {_APPEND}, 384)",
        f"os.open(self._folder.ledger / self._file, {_APPEND}, 384)",
        "self._folder.ledger / self._file",
        "Path(__file__)",
        "Path(legion.__file__)",
    ),
    "jobs/machine_runs": (  # the fence has found the run among the machine's own
        "context.data.runs / run",
        "context.data.runs / placed.name",
        "context.data.runs / this_run.name",
        "folder / f'leaving-{key}.pack'",
        "Path(folder)",
        f"os.open(path, {_APPEND} | os.O_NOFOLLOW, 384)",
    ),
    "machine": (  # the head has sent the run
        "context.data.runs / job.run.name",
        "self.context.data.runs / job.run.name",
        "self.context.data.runs / work.name",
        "self._data.runs / job.run.name",
        "self._root / 'runs' / job.run.name",
        "self._context.data.runs.glob(f'*/{REPORTED}')",
        "context.data.runs.glob(f'*/{FILE}')",
        "folder / 'worktrees' / f'{name}.run'",
        "project.folder / 'worktrees' / f'{seat}.run'",
        "context.data.root / 'worktrees' / str(job.project.id)",
        "folder / f'arriving-{named}.pack'",
        "folder / f'leaving-{commit}.pack'",
        "Path(pack.name)",
    ),
}
"""Further ones of a room."""
CALLS = {
    "api": "os.walk",
    "service": "os.access os.path.exists shutil.disk_usage shutil.which",
    "gateway": "os.open os.stat",
    "jobs/machine_runs": "os.open tempfile.TemporaryDirectory",
    "machine": "os.execv tempfile.NamedTemporaryFile",
}
"""What takes the name of a file beside `pathlib`: with a name from the table or a row, or a program to look for."""
NAMELESS = {
    *("os.close", "os.fdopen", "os.fstat", "os.geteuid", "os.getpid", "os.kill", "os.path", "os.pipe", "os.read"),
    *(
        "gzip.compress",
        "os.set_blocking",
        "os.urandom",
        "os.write",
        "os.pathsep",
        "os.environ",
        "os.SEEK_END",
        "os.W_OK",
    ),
}
"""They take no name of a file."""
FILE_MODULES = {"os", "os.path", "shutil", "tempfile", "gzip", "pathlib", "io", "operator", "codecs"}
IMPORTED = {"Path", "PurePosixPath", "SEEK_END", "attrgetter", "getincrementaldecoder"}
"""What is taken out of those modules by its name; everything else is written with its module, so that it is seen."""
OPENERS = {
    *("bz2", "dbm", "filecmp", "fileinput", "glob", "io", "linecache", "lzma", "mmap", "pickle", "pkgutil", "runpy"),
    *("shelve", "sqlite3", "tarfile", "zipfile", "zipimport", "anyio", "aiofiles", "starlette.staticfiles"),
    *("fastapi.staticfiles", "importlib.resources", "importlib.util"),
}
"""Modules that open files by name, and of which no such room has need."""
KNOWN = {one for some in LISTED.values() for one in some}
OPENS = {"open", "os.open", "io.open", "os.listdir", "os.scandir", "glob.glob"}
"""By their whole names: `terminals.open` opens no file."""
JOINS = {
    "glob",
    "rglob",
    "joinpath",
    "with_name",
    "with_stem",
    "with_suffix",
    "with_segments",
    "__truediv__",
    "FileResponse",
    "Path",
    "PurePath",
    "PosixPath",
    "os.path.join",
}


def is_constant(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) or (isinstance(part, ast.Name) and part.id.lstrip("_").isupper())


def is_arithmetic(part: ast.expr) -> bool:
    """A division, not a path: of a number, or by one."""
    both = (part.left, part.right) if isinstance(part, ast.BinOp) else ()
    return any(isinstance(one, ast.Constant | ast.BinOp) and "'" not in ast.unparse(one) for one in both)


def made(parsed: ast.AST) -> Iterator[ast.expr]:
    """Every expression that makes a path of something that is no constant."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if not is_constant(node.right) and not is_arithmetic(node):
                yield node
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            yield ast.BinOp(node.target, node.op, node.value)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func) if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in JOINS or ast.unparse(node.func) in JOINS | OPENS:
                args = [*node.args, *(word.value for word in node.keywords)]
                of_a_row = all(isinstance(one, ast.Attribute) and one.attr in ROW_FOLDERS for one in args)
                if args and not of_a_row and not all(map(is_constant, args)):
                    yield node


def found_in(parsed: ast.AST, room: str = "") -> list[str]:
    return [one for one in map(ast.unparse, made(parsed)) if one not in KNOWN and one not in LISTED_IN.get(room, ())]


def rooms() -> list[Path]:
    return [
        path
        for path in files_with(r"[Pp]ath| /=? |open\(|glob\(|\b(os|shutil|tempfile)\.|FileResponse", "src")
        if room_of(path)
    ]


def room_of(path: Path) -> str:
    return next((room for room in ASKED if path.is_relative_to(SOURCE / room)), "")


def other_ways(parsed: ast.AST) -> Iterator[str]:
    """To a file: calls of `os` and its like that take a name, such modules under other names, and further modules."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.ImportFrom):
            name = node.module or ""
            is_hidden = name in FILE_MODULES and any(one.asname or one.name not in IMPORTED for one in node.names)
            if is_hidden or not OPENERS.isdisjoint({name, *(f"{name}.{one.name}" for one in node.names)}):
                yield ast.unparse(node)
        elif isinstance(node, ast.Import):
            if any(one.name in OPENERS or (one.asname and one.name in FILE_MODULES) for one in node.names):
                yield ast.unparse(node)
        elif isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            if name.rpartition(".")[0] in FILE_MODULES and not (name in NAMELESS or name.startswith("os.O_")):
                yield name


def test_no_path_is_built_from_a_request():
    found = [f"{place(path)}: {one}" for path in rooms() for one in found_in(tree(path), room_of(path))]
    assert not found, f"look it up in a table, or read it with safe_files: {found}"


def test_a_room_that_is_asked_has_no_other_way_to_a_file():
    ways = {(room_of(path), one) for path in python_files("src") if room_of(path) for one in other_ways(tree(path))}
    listed = {(room, name) for room, names in CALLS.items() for name in names.split()}
    assert not ways - listed - {("gateway", "os.path.expanduser")}
    assert not listed - ways, "not needed any more"


def test_every_exception_is_still_needed():
    there = {ast.unparse(one) for path in rooms() for one in made(tree(path))}
    assert not {*KNOWN, *chain(*LISTED_IN.values())} - there - {"Path(registry.find(context, cwd).common_dir)"}


def test_files_of_a_request_are_seen_by_the_rule():
    for code in (
        "self._root / name",
        "root / request.path_params['name']",
        "Path(wanted.file)",
        "folder.joinpath(name)",
        "os.path.join(folder, name)",
        "Path(f'/x/{name}')",
        "folder /= name",
        "open(f'{folder}/{name}')",
        "os.open(name, os.O_RDONLY)",
        "folder.glob(name)",
        "folder.with_suffix(name)",
        "FileResponse(name)",
        "FileResponse(path=name)",
    ):
        assert found_in(ast.parse(code)), code


def test_other_ways_to_a_file_are_seen_by_the_rule():
    for code in (
        "os.stat(name)",
        "os.path.getsize(name)",
        "os.readlink(name)",
        "shutil.copyfile(name, there)",
        "io.FileIO(name)",
        "codecs.open(name)",
        "operator.truediv(folder, name)",
        "import tarfile",
        "import zipfile as packed",
        "import linecache",
        "import os as system",
        "from os import open as look",
        "from os.path import join",
        "from pathlib import Path as Place",
        "from starlette.staticfiles import StaticFiles",
        "from importlib import resources",
    ):
        assert list(other_ways(ast.parse(code))), code


def test_the_api_opens_no_file_itself():
    """But those of the page's table, and what the service has looked up for a machine."""
    calls = [
        f"{path.name}: {ast.unparse(node.func)}"
        for path in rooms()
        if path.is_relative_to(SOURCE / "api")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("read_bytes", "read_text", "open")
    ]
    opened = {one for one in calls if not one.endswith(("terminals.open", "streams.open"))}
    assert opened <= {"page.py: self._paths[name].read_bytes", "machines.py: file.open"}
