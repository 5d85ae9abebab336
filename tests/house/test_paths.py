"""No path is built from a request: where `api` and `service` make a path, its parts are constants or listed here.

A name that comes with a request is looked up in a table of what exists, or read with `system/safe_files.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.codebase import SOURCE, files_with, place, tree

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
KNOWN = {one for some in LISTED.values() for one in some}
OPENS = {"open", "os.open", "io.open", "os.listdir", "os.scandir", "glob.glob"}
"""By their whole names: `terminals.open` opens no file."""
JOINS = {"glob", "rglob", "joinpath", "with_name", "with_stem", "Path", "PurePath", "PosixPath", "os.path.join"}


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
                of_a_row = all(isinstance(one, ast.Attribute) and one.attr in ROW_FOLDERS for one in node.args)
                if node.args and not of_a_row and not all(map(is_constant, node.args)):
                    yield node


def found_in(parsed: ast.AST) -> list[str]:
    return [one for one in map(ast.unparse, made(parsed)) if one not in KNOWN]


def rooms() -> list[Path]:
    return [
        path
        for path in files_with(r"[Pp]ath| /=? |open\(|glob\(|os\.(listdir|scandir)", "src")
        if path.relative_to(SOURCE).parts[0] in ("api", "service")
    ]


def test_no_path_is_built_from_a_request():
    found = [f"{place(path)}: {one}" for path in rooms() for one in found_in(tree(path))]
    assert not found, f"look it up in a table, or read it with safe_files: {found}"


def test_every_exception_is_still_needed():
    there = {ast.unparse(one) for path in rooms() for one in made(tree(path))}
    assert not KNOWN - there - {"Path(registry.find(context, cwd).common_dir)"}


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
    ):
        assert found_in(ast.parse(code)), code


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
