"""Names the telling line of a failed command's output, and its likely cause where no change is to blame.

Signs, not proof: the cause says what to look at. The first row of the table that fits counts.
"""

from __future__ import annotations

import re

_NOT_EXECUTABLE, _NOT_FOUND, _KILLED = 126, 127, 137
_TOOL = re.compile(
    r"(?m)^(?:(?:/bin/)?(?:ba|da|z)?sh: (?:line )?(?:\d+: )?(?=[^\s:]+: (?:command )?not found)"
    r"|make(?:\[\d+\])?: (?=[^\s:]+: No such file or directory$))(?P<tool>[^\s:]+)"
)
_SHELL = "in your shell and run `legion doctor --try`"
_BY_PROXY, _NO_NETWORK = "the proxy refused it", "it found no network"
_MEMORY = "`sandbox.memory_gb` in your settings is the limit of one run"
_TABLE = tuple(
    (re.compile("|".join(signs)), cause)
    for cause, signs in {
        "it writes to what [setup] made, which checks can only read: give the tool another folder": (
            *("EROFS", "Read-only file system", r"(?:ENOENT|EACCES|EPERM)[^\n]*node_modules/\."),
        ),
        f"it does not know a certificate: set SSL_CERT_FILE (for node NODE_EXTRA_CA_CERTS) {_SHELL}": (
            *("CERTIFICATE_VERIFY_FAILED", "[Cc]ertificate verify failed", "[Ss]elf.signed certificate", "SELF_SIGNED"),
            *("unable to get (?:local )?issuer", "UNABLE_TO_(?:GET|VERIFY)", "invalid peer certificate", "x509: cert"),
            "PKIX path building failed",
        ),
        f"{_BY_PROXY}: set HTTPS_PROXY and NO_PROXY {_SHELL}": (
            *("Proxy Authentication Required", "ProxyError", "tunneling socket", "Could not resolve proxy"),
        ),
        f"{_NO_NETWORK}: look at `sandbox.network`, or set HTTPS_PROXY {_SHELL}": (
            *("ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "Temporary failure in name resolution", "no such host"),
            *("[Cc]ould not resolve host", "Network is unreachable", "failed to lookup address"),
            *("UnknownHostException", "NewConnectionError"),
        ),
        "it needs a file that is not there: is it left out of git, or made by a build?": (r"Cannot find module '[./]",),
        "it lacks a module: add it to what [setup] in legion.toml installs": (
            "No module named|Cannot find module|ERR_MODULE_NOT_FOUND|cannot load such file|filter module '",
        ),
        "a disk is full: free some space": ("ENOSPC", "No space left on device"),
        f"it ran out of memory: {_MEMORY}": (
            *("heap out of memory", "MemoryError", "OutOfMemoryError", "Cannot allocate memory"),
        ),
        "it needs more time: raise `timeout` of the check in legion.toml": (r"its limit of [\d.e+]+ s had passed",),
    }.items()
)
_MODULE = re.compile(r"(?:No module named|Cannot find module|filter module|such file --) ['\"]?([\w@/.-]+)")
_REFUSED = re.compile(r"\[The sandbox refused ([^:\s]+): it .*\]")
_OF_THE_NETWORK = [cause for _, cause in _TABLE if cause.startswith((_BY_PROXY, _NO_NETWORK))]
_NOISE = re.compile(
    r"Node\.js v[\d.]+|npm (?:ERR!|error)(?: +(?:[A-Z]|[a-z]+ |/).*)?|make.*: \*\*\* .*|at .+[:)\]]\d*"
    r"|note: This error.*|hint: .*|.*See above for .*|[\W_]*"
)
"""Lines that runtimes and runners end with, which say nothing themselves."""
_ERROR = re.compile(r"(?i)error|exception|fatal|fail|panic|cannot|could not|not found|no such|missing|denied|refused")
_LONGEST_LINE = 200


def telling_line(words: str) -> str:
    """The line that says most: the last one with the sign of a cause, else with a word for an error, else the last."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    plain = [line for line in lines if not _NOISE.fullmatch(line)] or lines
    signs = [_REFUSED, *(sign for sign, _ in _TABLE), _TOOL, _ERROR]
    found = next((line for sign in signs for line in reversed(plain) if sign.search(line)), "")
    return (found or (plain[-1] if plain else "nothing"))[:_LONGEST_LINE]


def reason(words: str, exit_code: int | None) -> str:
    """The telling line, and the likely cause behind it."""
    cause = likely_cause(words, exit_code)
    return telling_line(words) + (f" (likely cause: {cause})" if cause else "")


def refused_host(host: str, why: str) -> str:
    """What follows the output of a command whose sandbox refused it a host."""
    return f"The sandbox refused {host}: it {why}"


def likely_cause(tail: str, exit_code: int | None) -> str:
    """A part of a sentence; empty where nothing points at one. Without an exit code the output alone tells."""
    missing = _TOOL.search(tail)
    found = next((cause for signs, cause in _TABLE if signs.search(tail)), "")
    if exit_code == _NOT_FOUND or (missing and (exit_code is None or not found)):
        tool = f"`{missing['tool']}`" if missing else "a program that it starts"
        return f"{tool} is not on PATH there: install it, then run `legion doctor --try`"
    if exit_code == _NOT_EXECUTABLE:
        return "a file that it starts is not executable: `git update-index --chmod=+x FILE`, and commit"
    refused = _REFUSED.search(tail)
    if refused and found in ("", *_OF_THE_NETWORK):
        return f"its sandbox does not let it reach {refused[1]}: `sandbox.allow` in your settings opens that host"
    if not found and exit_code == _KILLED:
        return f"it was killed, mostly for want of memory: {_MEMORY}"
    module = _MODULE.search(tail)
    return found.replace("a module:", f"the module `{module[1]}`:") if module else found
