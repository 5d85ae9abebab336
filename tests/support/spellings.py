"""Odd spellings of a number and of a path, as they are sent and as they are decoded. None of them is a route."""

from __future__ import annotations

from collections.abc import Callable

NUMBERS: dict[str, tuple[str, str]] = {
    "plus": ("+1", "+1"),
    "space before": ("%201", " 1"),
    "space behind": ("1%20", "1 "),
    "point": ("1.0", "1.0"),
    "exponent": ("1e0", "1e0"),
    "leading zero": ("01", "01"),
    "many zeros": ("0" * 21 + "1", "0" * 21 + "1"),
    "underscore": ("1_0", "1_0"),
    "minus": ("-1", "-1"),
    "zero": ("0", "0"),
    "hexadecimal": ("0x1", "0x1"),
    "too large": ("9" * 19, "9" * 19),
    "Arabic digit": ("%D9%A1", "\u0661"),
    "wide digit": ("%EF%BC%91", "\uff11"),
    "escaped digit": ("%31", "1"),
    "newline": ("1%0A", "1\n"),
    "nul": ("1%00", "1\0"),
    "semicolon": ("1;x", "1;x"),
    "letter": ("x", "x"),
    "empty": ("", ""),
    "dots": ("..", ".."),
    "comma": ("1,2", "1,2"),
}

PATHS: dict[str, Callable[[str], tuple[str, str]]] = {
    "two slashes before": lambda path: (f"/{path}", f"/{path}"),
    "two slashes inside": lambda path: ("//".join(path.rsplit("/", 1)), "//".join(path.rsplit("/", 1))),
    "slash behind": lambda path: (f"{path}/", f"{path}/"),
    "dot segment": lambda path: (f"/.{path}", f"/.{path}"),
    "way up": lambda path: (f"/v1/..{path}", f"/v1/..{path}"),
    "escaped way up": lambda path: (f"/v1/%2e%2e{path}", f"/v1/..{path}"),
    "escaped slash": lambda path: (f"/{path[1:].replace('/', '%2F')}", path),
    "escaped letter": lambda path: (f"{path[:-1]}%{ord(path[-1]):02x}", path),
    "semicolon": lambda path: (f"{path};x=1", f"{path};x=1"),
    "newline": lambda path: (f"{path}%0a", f"{path}\n"),
    "carriage return": lambda path: (f"{path}%0d", f"{path}\r"),
    "nul": lambda path: (f"{path}%00", f"{path}\0"),
    "space": lambda path: (f"{path}%20", f"{path} "),
    "capitals": lambda path: (path.upper(), path.upper()),
    "backslash": lambda path: (path.replace("/", "\\"), path.replace("/", "\\")),
    "absolute": lambda path: (f"http://127.0.0.1{path}", f"http://127.0.0.1{path}"),
}
