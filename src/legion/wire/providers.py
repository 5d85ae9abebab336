"""Shapes of requests and answers about model providers. A key is sent only to the daemon, and only to be stored."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class AddProvider:
    """`legion provider add`: one place of a key. Address and way stay as they were if left out."""

    name: str
    url: str = ""
    kind: str = ""
    """Which API it speaks."""
    model: str | None = None
    """The model that it is asked for, whatever an agent names; empty: that. None: as it was."""
    auth: str = ""
    key_file: str = ""
    key_env: str = ""
    key_command: str = ""
    keyring: bool = False
    no_key: bool = False
    key: str = ""
    """The key itself, to be kept: in the keyring if that is named, else in a file that only the person can read."""
    token_url: str = ""
    """Where a login is exchanged for short-lived tokens."""
    account_of: str = ""
    """The provider whose further login it is; address, way and model are that provider's if left out."""


@dataclass(kw_only=True)
class UseAccount:
    """`legion provider account use`: this login is asked first."""

    name: str


@dataclass(kw_only=True)
class BeginLogin:
    """`legion provider login`: a code for the person to confirm in a browser."""

    name: str
    unofficial: bool = False
    """The person accepts that this way is neither supported nor permitted by the provider."""
    model: str = ""
    github: str = ""
    token_url: str = ""
    url: str = ""
    """Addresses other than the usual ones."""


@dataclass(kw_only=True)
class LoginBegun:
    schema: str = "legion.login/1"
    id: str
    code: str
    url: str
    seconds: float
    """How long the code is good."""


@dataclass(kw_only=True)
class FinishLogin:
    id: str


@dataclass(kw_only=True)
class LoginState:
    schema: str = "legion.loggedin/1"
    done: bool
    """False: the person has not confirmed yet; ask again."""
    message: str
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class RemoveProvider:
    name: str
    yes: bool = False
    """Also while agents work with it."""


@dataclass(kw_only=True)
class TryProvider:
    name: str
    model: str = ""
    """Empty: the one of the settings, else a small one."""


@dataclass(kw_only=True)
class LimitLine:
    """A provider's last report about how much of a limit is used."""

    at: float
    status: int
    window: str
    utilization: float | None
    resets_at: float | None


@dataclass(kw_only=True)
class ProviderLine:
    name: str
    url: str
    auth: str
    key: str
    """Where its key comes from, in words; never a key."""
    found: bool | None
    """Whether something is there. Null where only asking the keyring could tell."""
    default: bool
    limit: LimitLine | None
    kind: str = "anthropic"
    model: str = ""
    account_of: str = ""
    """The provider whose further login it is."""


@dataclass(kw_only=True)
class Providers:
    schema: str = "legion.providers/1"
    file: str
    providers: list[ProviderLine]
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class SetRoute:
    """`legion provider route set`: ask these, one after the other, for a model."""

    model: str
    to: list[str]
    provider: str = ""
    """Only for runs with this provider."""
    agent: str = ""
    role: str = ""
    team: str = ""
    """Only for runs with such a label."""
    most_usd: float | None = None
    """A model that costs more per million output tokens is skipped."""


@dataclass(kw_only=True)
class RemoveRoute:
    model: str
    provider: str = ""
    agent: str = ""
    role: str = ""
    team: str = ""


@dataclass(kw_only=True)
class RouteLine:
    model: str
    provider: str
    to: list[str]
    agent: str = ""
    role: str = ""
    team: str = ""
    most_usd: float | None = None


@dataclass(kw_only=True)
class Routes:
    schema: str = "legion.routes/1"
    file: str
    routes: list[RouteLine]


@dataclass(kw_only=True)
class ModelsOf:
    """What one provider says it has."""

    provider: str
    models: list[str]
    trouble: str = ""


@dataclass(kw_only=True)
class Models:
    schema: str = "legion.models/1"
    providers: list[ModelsOf]


@dataclass(kw_only=True)
class ProviderAnswer:
    """What came of one small request."""

    schema: str = "legion.provider/1"
    provider: str
    ok: bool
    model: str
    ms: int
    message: str
