"""The likely cause of a failed command that no change is to blame for, from its exit code and the end of its output.

Signs, not proof: the sentence says what to look at. The first row of the table that fits counts.
"""

from __future__ import annotations

import re

_NOT_EXECUTABLE, _NOT_FOUND, _KILLED = 126, 127, 137
_TOOL = re.compile(r"(?m)^(?:/bin/)?(?:ba|da|z)?sh: (?:line )?(?:\d+: )?(?P<tool>[^\s:]+): (?:command )?not found")
_SHELL = "in your shell and run `legion up` in the repository"
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
        f"the proxy refused it: set HTTPS_PROXY and NO_PROXY {_SHELL}": (
            *("Proxy Authentication Required", "ProxyError", "tunneling socket", "Could not resolve proxy"),
        ),
        f"it found no network: look at `sandbox.network`, or set HTTPS_PROXY {_SHELL}": (
            *("ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "Temporary failure in name resolution", "no such host"),
            *("[Cc]ould not resolve host", "Network is unreachable", "failed to lookup address"),
            *("UnknownHostException", "NewConnectionError"),
        ),
        "it lacks a module, which [setup] in legion.toml does not install": (
            *("ModuleNotFoundError: No module named", "Cannot find module", "ERR_MODULE_NOT_FOUND"),
            "cannot load such file",
        ),
        "a disk is full: free some space": ("ENOSPC", "No space left on device"),
        f"it ran out of memory: {_MEMORY}": (
            *("heap out of memory", "MemoryError", "OutOfMemoryError", "Cannot allocate memory"),
        ),
        "it needs more time: raise `timeout` of the check in legion.toml": (r"its limit of [\d.e+]+ s had passed",),
    }.items()
)


def likely_cause(tail: str, exit_code: int | None) -> str:
    """A part of a sentence; empty where nothing points at one."""
    missing = _TOOL.search(tail)
    if exit_code == _NOT_FOUND:
        tool = f"`{missing['tool']}`" if missing else "a program that it starts"
        return f"{tool} is not on PATH there: install it, then run `legion up` in the repository"
    if exit_code == _NOT_EXECUTABLE:
        return "a file that it starts is not executable: `git update-index --chmod=+x FILE`, and commit"
    found = next((cause for signs, cause in _TABLE if signs.search(tail)), "")
    if not found and exit_code == _KILLED:
        return f"it was killed, mostly for want of memory: {_MEMORY}"
    return found
