"""Add, list and remove model providers.

Only the places of keys are known here, except a new key that Legion is to keep. A change here resumes the tickets that
wait for a provider.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import stat
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from legion.config.files import providers
from legion.config.files.project import parse
from legion.config.files.providers import TEMPLATES, ProviderApi, ProviderAuth, ProviderConfig, ProviderTemplate
from legion.domain.errors import BadInput, LegionError, NotAllowed, NotFound, StateConflict
from legion.domain.scheduling.usage import ProviderLimit
from legion.gateway.access.provider import NO_KEY, Provider
from legion.jobs.agent import model_access
from legion.jobs.agent.model_access import GatewayAccess, NoModelAccess
from legion.jobs.agent.spec import choose_program
from legion.jobs.board import Board
from legion.jobs.scheduling import provider_waits
from legion.jobs.supervise.usage import catch_up
from legion.jobs.trees import Trees
from legion.service.projects import registry
from legion.service.shared.fragments import shaped
from legion.store.work import runs, usage
from legion.system import files
from legion.wire.dispatch import Dispatch
from legion.wire.projects import Done
from legion.wire.providers import AddProvider, LimitLine, ProviderLine, Providers, RemoveProvider, UseAccount

_KEY = re.compile(r"[!-~]{1,16384}")
_LONG_LIVED = "sk-ant-oat"
"""The prefix of tokens of `claude setup-token`."""
_LOGIN = ".credentials.json"
"""Where Claude Code keeps a login."""
_SERVICE = "legion"
_ONE_AT_A_TIME = threading.Lock()


class _Keyring(Protocol):
    """The part of the library that is used here."""

    def set_password(self, service_name: str, username: str, password: str) -> None: ...


def add(context: Trees, wanted: AddProvider) -> Done:
    """Add a provider, or change the key, address or API of an existing one."""
    with _ONE_AT_A_TIME:
        there = dict(providers.load())
        before = there.get(wanted.name)
        one = _merged(context, wanted, before)
        there[wanted.name] = one
        _refuse_unfit(there)
        if wanted.key:
            _keep(context, wanted)
        providers.save(there)
        if one.key_file != str(_kept_file(context, wanted.name)):
            _forget(context, wanted.name)
    model_access.refresh_gateway_variables(context, changed=one.key_env)
    woken = provider_waits.wake_waiting(context)
    missing = [model_access.key_advice(wanted.name, one)] if model_access.key_found(context, one) is False else []
    missing += [still] if (still := provider_waits.missing(context)) else []
    # Both texts are the same if the added provider is the one in use.
    notes = [*dict.fromkeys(missing), *_woken_notes(woken)]
    if not one.account_of:
        notes += _other_notes(context, wanted.name)
    if one.kind is not ProviderApi.ANTHROPIC and not one.model:
        notes.append("Claude Code requests Claude's models: add --model with a model of this provider.")
    what = "added" if before is None else "changed"
    tip = f"`legion provider test {wanted.name}` tests it."
    return Done(message=f"Provider {wanted.name} is {what}; {tip}", notes=notes)


def remove(context: Trees, wanted: RemoveProvider) -> Done:
    with _ONE_AT_A_TIME:
        return _remove(context, wanted)


def _remove(context: Trees, wanted: RemoveProvider) -> Done:
    there = dict(providers.load())
    if wanted.name not in there:
        offered = model_access.known(context)
        if wanted.name in offered:
            raise StateConflict(
                f"{wanted.name} comes from {offered[wanted.name].key_env} in your environment: unset that variable."
            )
        raise _unknown(wanted.name, there)
    with context.store.read() as tx:
        busy = sorted({run.seat.replace("-", " ") for run in runs.active(tx) if run.access == wanted.name})
    if busy and not wanted.yes:
        raise StateConflict(f"Agents are using {wanted.name} ({', '.join(busy)}): wait for them, or add --yes.")
    del there[wanted.name]
    providers.save(there)
    kept = _forget(context, wanted.name)
    woken = provider_waits.wake_waiting(context)
    notes = [f"Agents were using it ({', '.join(busy)}); they get no more answers."] if busy else []
    notes += ["The key that Legion kept for it is deleted."] if kept else []
    return Done(message=f"Provider {wanted.name} is removed.", notes=[*notes, *_woken_notes(woken)])


def listed(context: Trees) -> Providers:
    catch_up(context)
    with context.store.read() as tx:
        limits = usage.limits(tx)
    chosen = _chosen(context)
    lines = [
        shaped(
            ProviderLine,
            one,
            name=name,
            key=describe_key(context, name, one),
            found=model_access.key_found(context, one),
            default=name == chosen,
            limit=limit_line(limits.get(name)),
        )
        for name, one in model_access.known(context).items()
    ]
    return Providers(file=str(providers.providers_file()), providers=lines, notes=_choice_notes(context))


def dispatch_notes(context: Trees, request: Dispatch) -> list[str]:
    """What keeps new tickets whose driver needs a model from starting; they wait until it is fixed."""
    settings = parse(registry.find(context, request.cwd).config_text, origin="legion.toml")
    for new in request.tickets:
        if not new.checkpoint and choose_program(context, settings, new.command, new.driver).capabilities.models:
            missing = provider_waits.missing(context)
            return [f"{missing} The ticket waits until then."] if missing else []
    return []


def describe_key(context: Board, name: str, one: ProviderConfig) -> str:
    """The place of a key. Of a command only the program is named: its arguments may be private."""
    if one.key_file:
        kept = one.key_file == str(_kept_file(context, name))
        return "kept by Legion" if kept else f"file {one.key_file}"
    if one.key_env:
        return f"variable {one.key_env}"
    if one.key_command:
        return f"output of {next(iter(one.key_argv), '')}"
    return "keyring" if one.key_keyring else "none needed"


def limit_line(limit: ProviderLimit | None) -> LimitLine | None:
    return shaped(LimitLine, limit, window=limit.span) if limit is not None else None


def known(context: Board, name: str) -> ProviderConfig:
    there = model_access.known(context)
    if name not in there:
        raise _unknown(name, there)
    return there[name]


def _unknown(name: str, there: Mapping[str, ProviderConfig]) -> NotFound:
    names = ", ".join(there) or "none yet"
    return NotFound(f"There is no provider {name} (existing: {names}): see `legion provider list`.")


def _merged(context: Board, wanted: AddProvider, before: ProviderConfig | None) -> ProviderConfig:
    """The provider as before, with the wanted changes. A further login starts as a copy of the first."""
    if wanted.account_of:
        before = before or _first_login(wanted)
        before = replace(before, account_of=wanted.account_of)
    template = TEMPLATES.get(wanted.name)
    url = wanted.url or (before.url if before else template.url if template else "")
    if not url:
        raise BadInput(f"Provider {wanted.name} needs an address: add --url, such as --url https://api.example.com.")
    usual = before.kind if before else template.kind if template else ProviderApi.ANTHROPIC
    kind = _kind(wanted.kind) if wanted.kind else usual
    if wanted.auth:
        auth = _auth(wanted.auth)
    elif wanted.key.startswith(_LONG_LIVED) or Path(wanted.key_file).name == _LOGIN:
        auth = ProviderAuth.OAUTH
    else:
        auth = before.auth if before else _usual_auth(kind, template)
    _refuse_two_keys(wanted)
    if auth is ProviderAuth.COPILOT and not (wanted.token_url or (before and before.token_url)):
        raise BadInput("Copilot needs a login: run `legion provider login copilot`.")
    made = replace(
        before or ProviderConfig(url=url),
        token_url=wanted.token_url or (before.token_url if before else ""),
        url=url,
        kind=kind,
        auth=auth,
        key_file="",
        key_env="",
        key_command="",
        key_keyring="",
    )
    return _with_key(context, wanted, made if wanted.model is None else replace(made, model=wanted.model))


def _first_login(wanted: AddProvider) -> ProviderConfig:
    there = providers.load()
    first = there.get(wanted.account_of)
    if first is None:
        raise _unknown(wanted.account_of, there)
    if first.account_of or wanted.account_of == wanted.name:
        of = first.account_of or wanted.account_of
        raise BadInput(
            f"{wanted.account_of} is itself a login of {of}: name that provider, and a new name for the login."
        )
    return first


def use(context: Trees, wanted: UseAccount) -> Done:
    """Put a login in front of the others of its provider. Conversations that run stay where they are for a while."""
    with _ONE_AT_A_TIME:
        there = dict(providers.load())
        if wanted.name not in there:
            raise _unknown(wanted.name, there)
        if wanted.name not in model_access.account_groups(there):
            raise StateConflict(
                f"{wanted.name} has no other login: `legion provider account add NAME --of {wanted.name}`."
            )
        group = there[wanted.name].account_of or wanted.name
        place = [name for name, one in there.items() if (one.account_of or name) == group]
        order = [wanted.name, *(name for name in place if name != wanted.name)]
        swapped = iter(order)
        providers.save({name: there[name] for name in (next(swapped) if one in place else one for one in there)})
    model_access.write_gateway_files(context)
    woken = provider_waits.wake_waiting(context)
    return Done(message=f"{wanted.name} is asked first; then {', '.join(order[1:])}.", notes=_woken_notes(woken))


def _usual_auth(kind: ProviderApi, template: ProviderTemplate | None) -> ProviderAuth:
    if template is not None:
        return template.auth
    return ProviderAuth.API_KEY if kind is ProviderApi.ANTHROPIC else ProviderAuth.BEARER


def _kind(word: str) -> ProviderApi:
    try:
        return ProviderApi(word)
    except ValueError:
        kinds = ", ".join(kind.value for kind in ProviderApi)
        raise BadInput(f"Legion does not speak the API {word!r}: choose one of {kinds}.") from None


def _refuse_unfit(there: Mapping[str, ProviderConfig]) -> None:
    """Refuse names and addresses that the gateway would refuse, also those written by hand."""
    for name, one in there.items():
        try:
            plain = not re.search(r"\s", one.url)
            Provider(name=name, url=one.url.rstrip("/") if plain else "", key=NO_KEY)
        except ValueError:
            raise BadInput(
                f"The URL of provider {name} is not valid: write one like https://api.example.com."
            ) from None


def _auth(word: str) -> ProviderAuth:
    try:
        return ProviderAuth(word)
    except ValueError:
        known_ways = ", ".join(way.value for way in ProviderAuth)
        raise BadInput(f"There is no --auth {word!r}: choose one of {known_ways}.") from None


def _refuse_two_keys(wanted: AddProvider) -> None:
    places = [wanted.key_file, wanted.key_env, wanted.key_command, wanted.keyring, wanted.no_key]
    named = sum(bool(place) for place in places)
    if named > 1 or (wanted.key and named and not wanted.keyring):
        raise BadInput("A key comes from one place: give only one of the options about it.")
    if not named and not wanted.key:
        raise BadInput(f"The key of {wanted.name} is missing: give the key, its place, or --no-key.")
    if wanted.key and not _KEY.fullmatch(wanted.key):
        raise BadInput("The key must be one word of ASCII letters, digits and signs: copy it again.")


def _with_key(context: Board, wanted: AddProvider, one: ProviderConfig) -> ProviderConfig:
    """The provider with the place of its key."""
    if wanted.keyring:
        _keyring()
        return replace(one, key_keyring="yes")
    if wanted.key:
        return replace(one, key_file=str(_kept_file(context, wanted.name)))
    if wanted.key_file:
        _refuse_open_file(Path(wanted.key_file))
        return replace(one, key_file=wanted.key_file)
    if wanted.key_env:
        return replace(one, key_env=wanted.key_env)
    if wanted.key_command:
        made = replace(one, key_command=wanted.key_command)
        _refuse_command(made)
        return made
    return one


def _refuse_open_file(path: Path) -> None:
    try:
        found = path.stat()
    except OSError as fault:
        raise BadInput(f"The key file {path} cannot be read ({fault.strerror}): write the key there first.") from None
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise NotAllowed(f"The key file {path} must be yours and closed to others: run `chmod 600 {path}`.")


def _refuse_command(one: ProviderConfig) -> None:
    try:
        program = next(iter(one.key_argv), "")
    except ValueError:
        raise BadInput("The key command has an unclosed quote: close it.") from None
    if shutil.which(program) is None:
        raise BadInput(f"The program {program!r} of the key command is not on PATH: install it or name its full path.")


def _kept_file(context: Board, name: str) -> Path:
    return context.data.keys / name


def _keep(context: Board, wanted: AddProvider) -> None:
    if wanted.keyring:
        try:
            _keyring().set_password(_SERVICE, wanted.name, wanted.key)
        except Exception:  # backends raise errors of any type, and they may contain the key
            raise NotAllowed("The keyring cannot be opened by the daemon: unlock it, or leave out --keyring.") from None
        return
    context.data.keys.mkdir(exist_ok=True, mode=0o700)
    files.write_atomic(_kept_file(context, wanted.name), f"{wanted.key}\n")


def _forget(context: Board, name: str) -> bool:
    """Delete the key in our own folder. A key in a keyring belongs to the person."""
    there = _kept_file(context, name).exists()
    _kept_file(context, name).unlink(missing_ok=True)
    return there


def _keyring() -> _Keyring:
    try:
        # An optional extra that is slow to import and rarely needed.
        found: _Keyring = importlib.import_module("keyring")
    except ImportError:
        raise NotAllowed(
            'The keyring needs another library: run `pip install "legionary[keyring]"`, or leave out --keyring.'
        ) from None
    return found


def _chosen(context: Trees) -> str:
    try:
        way = model_access.choose(context)
    except LegionError:
        return ""
    return way.provider if isinstance(way, GatewayAccess) else ""


def _choice_notes(context: Trees) -> list[str]:
    """Why Claude Code would not start now although there are providers."""
    if not model_access.known(context):
        return []
    try:
        model_access.choose(context)
    except NoModelAccess as missing:
        return [missing.message]
    return []


def _other_notes(context: Trees, name: str) -> list[str]:
    """A note if agents use another provider than the one that was added."""
    used = _chosen(context)
    if used in ("", name):
        return []
    return [f'Agents use {used}: write `provider = "{name}"` under [claude] in {context.user.origin} to use {name}.']


def _woken_notes(woken: list[int]) -> list[str]:
    return [f"Work that waited for a provider resumes: {_tickets(woken)}."] if woken else []


def _tickets(ids: list[int]) -> str:
    return f"ticket {ids[0]}" if len(ids) == 1 else f"tickets {', '.join(str(id) for id in ids)}"
