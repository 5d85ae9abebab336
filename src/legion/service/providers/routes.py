"""Set, list and remove routes of models to providers, and list the models of each provider."""

from __future__ import annotations

import http.client
import json
import threading
import uuid
from dataclasses import replace
from urllib.parse import urlsplit

from legion.config.files import routes
from legion.config.files.routes import RouteConfig
from legion.domain.agents.agent import ROOT
from legion.domain.errors import BadInput, NotFound
from legion.gateway import lifecycle
from legion.gateway.files.passes import Pass, grant, revoke
from legion.jobs.agent import model_access
from legion.jobs.board import Board
from legion.service.providers import catalog
from legion.service.providers.probe import error_text
from legion.service.shared.fragments import shaped
from legion.store.staff import agents
from legion.store.work import runs
from legion.wire.projects import Done
from legion.wire.providers import Models, ModelsOf, RemoveRoute, RouteLine, Routes, SetRoute

_PATIENCE = 30.0
_DEAREST = 1e6
_ONE_AT_A_TIME = threading.Lock()


def listed(context: Board) -> Routes:
    lines = [shaped(RouteLine, one, to=[target.spelled for target in one.to]) for one in routes.load()]
    return Routes(file=str(routes.routes_file()), routes=lines)


def set_route(context: Board, wanted: SetRoute) -> Done:
    """A new route goes before all others, but behind those that are for fewer runs; an existing one keeps its place."""
    if not wanted.model or not wanted.to:
        raise BadInput("A route needs a model and a provider: `legion provider route set 'claude-haiku-*' ollama`.")
    if wanted.most_usd is not None and not 0 <= wanted.most_usd < _DEAREST:
        raise BadInput("--most-usd must be dollars for a million tokens, such as 5.")
    to = tuple(routes.target(text) for text in wanted.to)
    made = shaped(RouteConfig, wanted, agent=_agent(context, wanted.agent), to=to)
    for name in (*(target.provider for target in made.to), *filter(None, (made.provider,))):
        catalog.known(context, name)
    with _ONE_AT_A_TIME:
        there = routes.load()
        if any(one.about == made.about for one in there):
            routes.save(tuple(made if one.about == made.about else one for one in there))
        else:
            place = next((n for n, one in enumerate(there) if _labels(one) <= _labels(made)), len(there))
            routes.save((*there[:place], made, *there[place:]))
    model_access.write_gateway_files(context)
    places = ", then ".join(target.spelled for target in made.to)
    return Done(message=f"{made.model} is requested from {places}.", notes=[])


def _labels(route: RouteConfig) -> int:
    """How narrowly it names the runs that it is for."""
    return sum(bool(label) for label in (route.agent, route.role, route.team, route.provider))


def remove_route(context: Board, wanted: RemoveRoute) -> Done:
    with _ONE_AT_A_TIME:
        there = routes.load()
        # A route of an earlier release may name a word that is no agent.
        literal = any(one.agent == wanted.agent for one in there)
        agent = wanted.agent if literal else _agent(context, wanted.agent)
        gone = shaped(RouteConfig, wanted, agent=agent, to=())
        left = tuple(one for one in there if one.about != gone.about)
        if len(left) == len(there):
            raise NotFound(f"There is no route for {wanted.model}: see `legion provider route list`.")
        routes.save(left)
    model_access.write_gateway_files(context)
    return Done(message=f"The route for {wanted.model} is removed.", notes=[])


def _agent(context: Board, word: str) -> str:
    """The conversation by which the gateway knows an agent: a standing agent's id, or that of a ticket's runs.

    Raises NotFound for a word that is neither; a pattern may be for agents that do not exist yet.
    """
    if not word or "*" in word:
        return word
    with context.store.read() as tx:
        return word if runs.has_conversation(tx, word) else agents.find(tx, word, by=ROOT).id


def models(context: Board, name: str = "") -> Models:
    """The models that the providers list, requested through the gateway, which alone has their keys."""
    names = [name] if name else list(model_access.known(context))
    for one in names:
        catalog.known(context, one)
    folder = model_access.write_gateway_files(context)
    address = lifecycle.ensure(folder, context.user.daemon.gateway_port)
    found = []
    for one in names:
        run = f"models-{uuid.uuid4()}"
        token = grant(folder, Pass(run=run, ticket=0, project=0, agent="", provider=one))
        try:
            found.append(replace(_ask(address.url, token), provider=one))
        finally:
            revoke(folder, run)
    return Models(providers=found)


def _ask(url: str, token: str) -> ModelsOf:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_PATIENCE)
    headers = {"authorization": f"Bearer {token}", "anthropic-version": "2023-06-01"}
    try:
        connection.request("GET", "/v1/models?limit=1000", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as fault:
        return _no_models(f"the gateway did not answer ({fault})")
    finally:
        connection.close()
    if answer.status != 200:
        return _no_models(f"it answered {answer.status}: {error_text(body)}")
    try:
        return ModelsOf(provider="", models=sorted(str(one["id"]) for one in json.loads(body)["data"]))
    except (ValueError, KeyError, TypeError):
        return _no_models(f"its answer is not a list of models: {error_text(body)}")


def _no_models(why: str) -> ModelsOf:
    return ModelsOf(provider="", models=[], trouble=why)
