"""Model providers and agent programs. A key is sent only to the daemon, and only to be stored."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.lazy import dataclass
from legion.wire.table import OpenTo, Table, Text, operation
from legion.wire.ticket_fields import REQUIRED, described

if TYPE_CHECKING:
    from legion import wire


PROVIDER_APIS = ("anthropic", "openai_chat", "openai_responses")
KEY_FORMS = ("x-api-key", "bearer", "oauth", "copilot")


@dataclass(kw_only=True)
class AddProvider:
    """`legion provider add`: one place of a key. Address and way stay as they were if left out."""

    name: str = described(REQUIRED, argument="NAME", help="anthropic, or a name of yours.")
    url: str = described("", metavar="URL", help="Its address; known for many names.")
    kind: str = described("", choices=PROVIDER_APIS, help="Which API it speaks; known for many names.")
    model: str | None = described(None, metavar="M", help="Request this model, whatever model an agent names.")
    auth: str = described("", choices=KEY_FORMS, help="How the key is sent; oauth is a token of `claude setup-token`.")
    key_file: str = described("", metavar="FILE", help="Read the key from this file of yours, mode 0600.")
    key_env: str = described("", metavar="VAR", help="Read the key from this variable of the daemon's environment.")
    key_command: str = described("", metavar="CMD", help="This program prints the key; no shell runs it.")
    keyring: bool = described(False, help="Store the key in the system's keyring, or read it from there.")
    no_key: bool = described(False, help="It needs no key.")
    key: str = described("", no_option=True, secret=True, help="Its key; kept in a file that only you can read.")
    token_url: str = ""
    """Where a login is exchanged for short-lived tokens."""
    account_of: str = ""
    """The provider whose further login it is; address, way and model are that provider's if left out."""


@dataclass(kw_only=True)
class UseAccount:
    """`legion provider account use`: this login is asked first."""

    name: str = described(REQUIRED, argument="NAME", help="Its name.")


@dataclass(kw_only=True)
class BeginLogin:
    """`legion provider login`: a code for the person to confirm in a browser."""

    name: str
    unofficial: bool = described(False, help="Confirm that you want this although GitHub does not offer it.")
    model: str = described("", metavar="M", help="Request this model, whatever model an agent names.")
    github: str = described("", metavar="URL", help="Your company's own GitHub.")
    token_url: str = described("", metavar="URL", help="Where that GitHub exchanges the login for tokens.")
    url: str = described("", metavar="URL", help="The address of that GitHub's models.")


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
    name: str = described(REQUIRED, argument="NAME", help="Its name.")
    yes: bool = described(False, help="Also while agents use it; their requests then fail.")


@dataclass(kw_only=True)
class TryProvider:
    name: str = described(REQUIRED, argument="NAME", help="Its name.")
    model: str = described("", metavar="M", help="The model to request; the one of your settings if left out.")


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
class _RouteKey:
    """Which runs a route is for."""

    model: str = described(REQUIRED, argument="MODEL", help="The model that agents name; * matches any letters.")
    provider: str = described("", metavar="NAME", help="Only for runs with this provider.")
    agent: str = described("", metavar="NAME", help="Only for this standing agent, or a ticket's conversation.")
    role: str = described("", metavar="NAME", help="Only for agents in this role, such as engineer or qa.")
    team: str = described("", metavar="NAME", help="Only for agents of this team.")


@dataclass(kw_only=True)
class SetRoute(_RouteKey):
    """`legion provider route set`: ask these, one after the other, for a model."""

    to: list[str] = described(
        REQUIRED, argument="PROVIDER[/MODEL]...", help="provider or provider/model, in the order of their turn."
    )
    most_usd: float | None = described(
        None, metavar="USD", help="Skip providers that cost more per million output tokens."
    )


@dataclass(kw_only=True)
class RemoveRoute(_RouteKey):
    pass


@dataclass(kw_only=True)
class RouteLine(SetRoute):
    pass


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


@dataclass(kw_only=True)
class DriverLine:
    """One driver in the list."""

    name: str
    title: str
    kind: str
    """`claude`, `acp`, `json` or `command`: how its program is driven."""
    origin: str
    """`built in`, `shipped`, `yours` or `settings`."""
    tried: bool
    """The conformance suite was seen to pass with this program."""
    found: bool
    """Its program is on the PATH of the daemon."""
    can: list[str]
    """Its capabilities, by their names."""
    note: str = ""
    fault: str = ""
    """Why it cannot be used; empty: it can."""


@dataclass(kw_only=True)
class Drivers:
    schema: str = "legion.drivers/1"
    drivers: list[DriverLine]
    folder: str
    """Where your own programs are described."""


@dataclass(kw_only=True)
class TrialCalls:
    """How a scripted model calls the program's tools: names, and inputs as JSON with placeholders."""

    command_tool: str = ""
    command_input: str = ""
    edit_tool: str = ""
    edit_input: str = ""
    end_tool: str = ""
    end_input: str = ""


@dataclass(kw_only=True)
class DriverPage:
    schema: str = "legion.driver/1"
    driver: DriverLine
    run: list[str] = field(default_factory=list)
    """Its command line."""
    path: str = ""
    version: str = ""
    least: str = ""
    """The least version that works."""
    install: str = ""
    model: str = ""
    """The model where a ticket names none."""
    api: str = ""
    """The API of the gateway that it uses."""
    conversations: list[str] = field(default_factory=list)
    """Where it keeps its conversations, below the agent's own home folder."""
    instructions: list[str] = field(default_factory=list)
    file: str = ""
    """Your own file that describes or changes it."""
    permissions: bool = False
    """It asks before it uses a tool."""
    trial: TrialCalls


@dataclass(kw_only=True)
class AddDriver:
    """`legion driver add`: the text of a description; it is refused if the text has a fault."""

    name: str
    text: str


class ProviderRows(Table):
    """A key travels towards the daemon only."""

    @operation("GET", "/v1/providers", open_to=OpenTo.LOOKS)
    def providers(self) -> Providers:
        """List all providers with the source of their keys and their limits

        A key itself is never shown; limits are as last reported.
        """

    @operation("POST", "/v1/providers", open_to=OpenTo.BROWSER)
    def add_provider(self, wanted: AddProvider, /) -> wire.projects.Done:
        """Add a provider, or change one"""

    @operation(
        "POST", "/v1/providers/remove", open_to=OpenTo.BROWSER, asks="Remove {what} and the key that was stored for it?"
    )
    def remove_provider(self, wanted: RemoveProvider, /) -> wire.projects.Done:
        """Remove a provider, and the key that Legion stored

        A key in a keyring or in a file of yours stays.
        """

    @operation("POST", "/v1/providers/use", open_to=OpenTo.BROWSER)
    def use_account(self, wanted: UseAccount, /) -> wire.projects.Done:
        """Ask this login first. A running conversation stays with its login while that keeps its prompt in a cache"""

    @operation("POST", "/v1/providers/login", open_to=OpenTo.BROWSER, waits=True)
    def begin_login(self, wanted: BeginLogin, /) -> LoginBegun:
        """Start a login that a person confirms in a browser"""

    @operation("POST", "/v1/providers/login/finish", open_to=OpenTo.BROWSER, waits=True)
    def finish_login(self, wanted: FinishLogin, /) -> LoginState:
        """Wait a while for the confirmation, and return whether it came"""

    @operation("GET", "/v1/providers/routes", open_to=OpenTo.LOOKS)
    def routes(self) -> Routes:
        """List all routes; the first that matches counts"""

    @operation("POST", "/v1/providers/routes", open_to=OpenTo.BROWSER)
    def set_route(self, wanted: SetRoute, /) -> wire.projects.Done:
        """Send requests for a model to these providers

        `*` in MODEL and in names matches any letters. If a provider is at its limit, overloaded or does not answer, the
        next one is used, and a conversation stays with the provider that answered it. The first route that matches
        counts; a new one goes before all others, but behind those that are for fewer runs.
        """

    @operation("POST", "/v1/providers/routes/remove", open_to=OpenTo.BROWSER, asks="Remove the route of {what}?")
    def remove_route(self, wanted: RemoveRoute, /) -> wire.projects.Done:
        """Remove a route"""

    @operation("GET", "/v1/providers/models", open_to=OpenTo.LOOKS, waits=True)
    def models(self, name: str = "") -> Models:
        """List the models of your providers

        The gateway asks the providers for them now.
        """

    @operation("POST", "/v1/providers/test", open_to=OpenTo.BROWSER, waits=True)
    def try_provider(self, wanted: TryProvider, /) -> ProviderAnswer:
        """Send one small request and print the answer

        It takes the same path as requests of agents. Ends with 1 if it fails; if it succeeds, tickets that wait for a
        provider resume.
        """

    @operation("GET", "/v1/drivers", open_to=OpenTo.LOOKS)
    def drivers(self) -> Drivers:
        """List all drivers: what they start, whether it is installed, and whether it was tried"""

    @operation("GET", "/v1/drivers/{name}", open_to=OpenTo.LOOKS, waits=True)
    def driver(self, name: Text, /) -> DriverPage:
        """Show one driver: its program, its version, its model, and what it can do"""

    @operation("POST", "/v1/drivers", open_to=OpenTo.BROWSER)
    def add_driver(self, wanted: AddDriver, /) -> wire.projects.Done:
        """Add an agent program, or change a shipped one"""

    @operation("POST", "/v1/drivers/{name}/remove", open_to=OpenTo.BROWSER, asks="Remove your description of {what}?")
    def remove_driver(self, name: Text, /) -> wire.projects.Done:
        """Remove your own description of an agent program

        The file is kept with another ending. A shipped program that your description changed is as shipped again.
        """
