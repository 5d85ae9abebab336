"""A project: a git repository that Legion manages, what is known of its target, and the shell variables that it needs.

An allow-list. Addresses of registries are not on it, since they often carry a password; `sandbox.env` passes them, and
proxies with their password.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from legion.domain.checks import CheckResult

DEFAULT_SESSION = "default"
EPIC_SESSION = "epic-"
"""The start of the name of a session that is the branch of an epic."""
_SLUG = 45
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


class ConfigOrigin(Enum):
    """Where the legion.toml in force was read from."""

    TARGET = "target"
    """From the target commit: the normal case."""
    CHECKOUT = "checkout"
    """From the person's checkout, because the target has none yet."""


@dataclass(frozen=True, kw_only=True)
class Project:
    id: int
    name: str
    root: str
    """The person's checkout."""
    common_dir: str
    """The git folder that all checkouts of the repository share: one project per such folder and session."""
    branch: str
    worktrees: str
    """The folder that holds its worktrees."""
    config_text: str
    """The legion.toml in force."""
    config_hash: str
    config_origin: ConfigOrigin
    target: str
    """The commit of the integration branch, as the hub has it."""
    paused: bool = False
    baseline_commit: str | None = None
    """The commit on which the project's checks ran last."""
    baseline_verdict: CheckResult | None = None
    person_tip: str | None = None
    """The last commit seen on the person's branch."""
    person_absorbed: str | None = None
    """The person's last commit that the target holds."""
    person_refused: str | None = None
    """The person's commit that could not be absorbed; not tried again."""
    created_at: float = 0.0
    removed_at: float | None = None
    workers: int | None = None
    """How many agents work at once, where the person set that without a commit; None: as legion.toml says."""
    retries: int | None = None
    """How often a ticket is tried, where the person set that; None: as legion.toml says."""
    frozen: bool = False
    """The person froze everything: nothing new starts until `legion resume --all`."""
    session: str = ""
    """The name of the session; empty for the default one. All sessions of a repository share `common_dir`."""
    chosen: bool = False
    """Whether commands act on this session where they name none. Without a chosen one they act on the default."""
    base_commit: str | None = None
    """Where its branch was when the session was made."""
    version: int = 0

    @property
    def session_name(self) -> str:
        return self.session or DEFAULT_SESSION

    @property
    def resumed_by(self) -> str:
        """The command that lets a paused project start work again."""
        return "legion resume --all" if self.frozen else "legion resume"

    @property
    def baseline_known(self) -> bool:
        """The checks have run on the target as it is now."""
        return self.baseline_commit == self.target and self.baseline_verdict is not None

    @property
    def baseline_red(self) -> bool:
        return self.baseline_known and self.baseline_verdict is CheckResult.RED

    @property
    def upstream_pending(self) -> bool:
        """The person committed something that the target lacks and that was not refused yet."""
        settled = (None, self.target, self.person_absorbed, self.person_refused)
        return self.person_tip not in settled


def session_of_branch(branch: str) -> str:
    """The name of a session that is bound to this branch."""
    return branch.replace("/", "-")


def epic_slug(epic: str) -> str:
    """The epic's name as a part of a branch and of a session."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", epic).replace("..", ".").strip("-.")[:_SLUG].strip("-.") or "work"


def is_session_of_epic(session: str, epic: str) -> bool:
    """Whether a session is the epic's own: `epic-NAME`, or `epic-NAME-2` where the name was used before."""
    return re.fullmatch(rf"{EPIC_SESSION}{re.escape(epic_slug(epic))}(-[0-9]+)?", session) is not None


def session_fault(name: str) -> str:
    """Why a session cannot have this name; empty where it can."""
    if name == DEFAULT_SESSION:
        return "is the session that every project has"
    if not _SESSION.fullmatch(name) or ".." in name or name.endswith("."):
        return "must be at most 60 letters, digits, `-`, `_` and `.`"
    return ""


def acting(sessions: Iterable[Project]) -> Project | None:
    """Of the sessions of one repository, the one that commands act on."""
    there = sorted(sessions, key=lambda one: (not one.chosen, one.session != "", one.id))
    return there[0] if there else None


_PROXIES = tuple(
    name for word in ("HTTP", "HTTPS", "FTP", "ALL") for name in (f"{word}_PROXY", f"{word.lower()}_proxy")
)
_DIRECT = ("NO_PROXY", "no_proxy")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
CERTIFICATES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT"),
    *("GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE", "NPM_CONFIG_CAFILE", "DENO_CERT"),
)
_MANAGERS = (
    *("NVM_DIR", "NVM_BIN", "FNM_DIR", "VOLTA_HOME", "NODENV_ROOT", "NODENV_VERSION"),
    *("PYENV_ROOT", "PYENV_VERSION", "CONDA_PREFIX", "RBENV_ROOT", "RBENV_VERSION", "GOENV_ROOT", "GOENV_VERSION"),
    *("GOROOT", "GOTOOLCHAIN", "JAVA_HOME", "SDKMAN_DIR", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "ELAN_HOME"),
    *("ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "MISE_ENV", "DOTNET_ROOT"),
)
NAMES = ("PATH", *_PROXIES, *_DIRECT, *CERTIFICATES, *_MANAGERS)
_LONGEST = 16_384
_CREDENTIALS = re.compile(r"([a-z][a-z0-9+.-]*://)?.*@", re.IGNORECASE | re.DOTALL)
"""Up to the last @ of an address: a password may hold any character."""


def chosen(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of the variables that count, proxies without user and password."""
    found = {name: variables[name] for name in NAMES if variables.get(name)}
    found |= {name: _CREDENTIALS.sub(r"\1", found[name]) for name in _PROXIES if name in found}
    return {name: value for name, value in found.items() if len(value) <= _LONGEST and value.isprintable()}


def with_password(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the proxies whose user and password are left out."""
    return tuple(name for name in _PROXIES if _CREDENTIALS.match(variables.get(name, "")))


def different(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the variables that the two have not in common."""
    return tuple(name for name in NAMES if one.get(name) != other.get(name))


def for_programs(variables: Mapping[str, str]) -> dict[str, str]:
    """With a proxy, what is on this machine (Legion's gateway and tools) is still reached directly."""
    if not any(name in variables for name in _PROXIES):
        return dict(variables)
    said = next((variables[name] for name in _DIRECT if name in variables), "")
    direct = ",".join(dict.fromkeys((*filter(None, said.split(",")), *_LOOPBACK)))
    return {**variables, **dict.fromkeys(_DIRECT, direct)}
