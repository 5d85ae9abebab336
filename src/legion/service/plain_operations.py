"""The rows of wire/operations that are one use case each. operations.py has the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import legion.service.agents.attach
import legion.service.agents.claim
import legion.service.agents.hire
import legion.service.agents.mail
import legion.service.forge.pulls
import legion.service.leader.routines
import legion.service.notes
import legion.service.plans.templates
import legion.service.projects.numbers
import legion.service.projects.sessions
import legion.service.projects.teams
import legion.service.projects.trust
import legion.service.providers.routes
import legion.service.tickets.actions
import legion.service.tickets.attach
import legion.service.tickets.edit
import legion.service.tickets.race
import legion.service.tickets.review
import legion.service.tickets.shell
import legion.service.tickets.undo
import legion.service.views.doctor
import legion.service.views.epic
from legion.domain.agents.agent import ROOT
from legion.jobs.context import Context
from legion.service import questions, web
from legion.service.agents import delegation, plan_approval
from legion.service.forge import connections, issues
from legion.service.leader import chat
from legion.service.machines import listing, steer
from legion.service.plans import create, decisions, pages
from legion.service.plans.templates import from_epic
from legion.service.projects import collect, epic_branches, registry, trials
from legion.service.providers import agent_programs, catalog, login, probe
from legion.service.tickets import actions, by_hand, epic_change, imports, queue, record, session_rebase, try_tree
from legion.service.views import installation, output, status
from legion.wire.operations import Operations

P = ParamSpec("P")
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The person, a standing agent, or the agent of a ticket. Only a token proves which."""

    id: str
    """`root` for the person, a standing agent's id, or ticket-12 for the agent of a ticket."""
    ticket: int | None = None
    run: int | None = None
    """The run that the token was issued for; None for the person."""
    only_tools: bool = False
    """The person's rights, through Legion's tools and nothing else."""

    @property
    def is_person(self) -> bool:
        return self.id == ROOT


PERSON = Caller(id=ROOT)


class Serving(Protocol):
    """What a use case needs of the service."""

    context: Context
    caller: Caller


def use_case(function: Callable[Concatenate[Context, P], Answer]) -> Callable[Concatenate[Any, P], Answer]:
    """A row that is one use case."""

    def performed(service: Serving, /, *given: P.args, **named: P.kwargs) -> Answer:
        return function(service.context, *given, **named)

    return performed


def by_caller(function: Callable[Concatenate[Context, str, P], Answer]) -> Callable[Concatenate[Any, P], Answer]:
    """A row whose use case needs the caller's id, because it acts in that name."""

    def performed(service: Serving, /, *given: P.args, **named: P.kwargs) -> Answer:
        return function(service.context, service.caller.id, *given, **named)

    return performed


class PlainOperations(Operations):
    """In the order of the rooms; `use_case` and `by_caller` say what each is called with."""

    # Sessions
    sessions = use_case(legion.service.projects.sessions.session_list)
    branches = use_case(legion.service.projects.sessions.branch_list)
    new_session = use_case(legion.service.projects.sessions.new)
    switch_session = use_case(legion.service.projects.sessions.switch)
    complete_session = use_case(legion.service.projects.sessions.complete)
    open_epic_branch = use_case(epic_branches.open_branch)
    land_epic = use_case(epic_change.land)
    delete_session = use_case(legion.service.projects.sessions.delete)
    drop_session = use_case(legion.service.projects.sessions.drop)
    bind_session = use_case(legion.service.projects.sessions.bind)
    rebuild_session = use_case(legion.service.projects.sessions.rebuild)
    rebase_session = use_case(session_rebase.rebase)
    recreate_session = use_case(legion.service.projects.sessions.recreate)

    # Work from other tools
    import_tickets = use_case(imports.import_tickets)

    # Projects
    add_project = use_case(registry.add)
    use_shell = use_case(registry.use_shell)
    remove_project = use_case(registry.remove)
    trustable = use_case(legion.service.projects.trust.trustable)
    trust = use_case(legion.service.projects.trust.trust)
    projects = use_case(status.all_projects)
    worktrees = use_case(installation.worktrees)
    doctor = use_case(legion.service.views.doctor.doctor)
    attack = use_case(legion.service.views.doctor.attacked)
    trial = use_case(trials.page)
    try_checks = use_case(trials.try_checks)
    config = use_case(installation.config)
    preview_collect = use_case(collect.preview)
    numbers = use_case(legion.service.projects.numbers.numbers)
    set_numbers = use_case(legion.service.projects.numbers.set_numbers)
    freeze = use_case(legion.service.tickets.actions.freeze)
    thaw = use_case(legion.service.tickets.actions.thaw)

    # Machines
    machine_log = use_case(listing.log)
    pause_machine = use_case(steer.pause)
    resume_machine = use_case(steer.resume)
    drain_machine = use_case(steer.drain)
    remove_machine = use_case(steer.remove)
    update_machine = use_case(steer.update)

    # The board
    graph = use_case(status.graph)

    # Tickets
    diff = use_case(output.diff)
    drop = use_case(actions.drop)
    pause_ticket = use_case(actions.pause)
    resume_ticket = use_case(actions.resume)
    rewind = use_case(legion.service.tickets.undo.rewind)
    race = use_case(legion.service.tickets.race.race)
    race_page = use_case(legion.service.tickets.race.page)
    undo = use_case(legion.service.tickets.undo.undo)
    review = use_case(legion.service.tickets.review.review)
    switch_recording = use_case(record.set_recording)
    land = use_case(queue.land)
    edit = use_case(legion.service.tickets.edit.edit)
    move_in_queue = use_case(queue.move)
    merge_queue = use_case(queue.page)
    try_changes = use_case(try_tree.try_changes)

    # Terminals
    attach = use_case(legion.service.tickets.attach.attach)
    give_back = use_case(legion.service.tickets.attach.give_back)
    attach_agent = use_case(legion.service.agents.attach.attach)
    give_back_agent = use_case(legion.service.agents.attach.give_back)
    shell = use_case(legion.service.tickets.shell.shell)
    new_by_hand = use_case(by_hand.new)
    submit_ticket = use_case(by_hand.submit)

    # Plans
    plan = use_case(create.plan)
    plans = use_case(pages.plans)
    split = use_case(create.split)
    replan = use_case(create.replan)
    approve_plan = use_case(decisions.approve)
    reject_plan = use_case(decisions.reject)
    retry_plan = use_case(decisions.retry)
    drop_plan = use_case(decisions.drop)
    plan_text = use_case(decisions.text)
    save_plan = use_case(decisions.save)
    templates = use_case(legion.service.plans.templates.template_list)
    template = use_case(legion.service.plans.templates.template_page)
    run_template = use_case(legion.service.plans.templates.run)
    template_from = use_case(from_epic)
    epic = use_case(legion.service.views.epic.epic_page)
    epic_budget = use_case(legion.service.views.epic.set_budget)
    epic_gate = use_case(legion.service.views.epic.set_gate)
    stop_epic = use_case(legion.service.views.epic.stop_epic)

    # Notes
    remember = use_case(legion.service.notes.remember)
    memories = use_case(legion.service.notes.memories)
    forget = use_case(legion.service.notes.forget)

    # Leaders
    conversation = use_case(chat.conversation)
    add_routine = use_case(legion.service.leader.routines.add)
    routines = use_case(legion.service.leader.routines.listed)
    remove_routine = use_case(legion.service.leader.routines.remove)
    run_routine = use_case(legion.service.leader.routines.run)
    lessons = by_caller(legion.service.notes.lessons)
    accept_lesson = by_caller(legion.service.notes.accept)
    notes = by_caller(legion.service.notes.listed)
    add_note = by_caller(legion.service.notes.add)
    close_note = by_caller(legion.service.notes.close)

    # Questions
    inbox = use_case(questions.inbox)
    answer = use_case(questions.answer)

    # Agents and mail
    hire = by_caller(legion.service.agents.hire.hire)
    fire = by_caller(legion.service.agents.hire.fire)
    interrupt_agent = by_caller(legion.service.agents.hire.interrupt)
    delegate = by_caller(delegation.delegate)
    tell_agent = by_caller(legion.service.agents.mail.tell)
    broadcast = by_caller(legion.service.agents.mail.broadcast)
    mail = by_caller(legion.service.agents.mail.read)
    find_mail = use_case(legion.service.agents.mail.find)
    archive_mail = use_case(legion.service.agents.mail.archive)
    claim = by_caller(legion.service.agents.claim.claim)
    submit = by_caller(legion.service.agents.claim.submit)
    propose_plan = by_caller(plan_approval.propose)
    decide_plan = by_caller(plan_approval.decide)

    # Roles and teams
    roles = use_case(legion.service.projects.teams.role_list)
    role = use_case(legion.service.projects.teams.role_page)
    teams = use_case(legion.service.projects.teams.team_list)
    team = use_case(legion.service.projects.teams.team_page)

    # Providers
    drivers = use_case(agent_programs.listed)
    driver = use_case(agent_programs.shown)
    add_driver = use_case(agent_programs.add)
    remove_driver = use_case(agent_programs.remove)
    providers = use_case(catalog.listed)
    add_provider = use_case(catalog.add)
    remove_provider = use_case(catalog.remove)
    use_account = use_case(catalog.use)
    begin_login = use_case(login.begin)
    finish_login = use_case(login.finish)
    routes = use_case(legion.service.providers.routes.listed)
    set_route = use_case(legion.service.providers.routes.set_route)
    remove_route = use_case(legion.service.providers.routes.remove_route)
    models = use_case(legion.service.providers.routes.models)
    try_provider = use_case(probe.try_out)

    # Forges
    forges = use_case(connections.listed)
    add_forge = use_case(connections.add)
    remove_forge = use_case(connections.remove)
    try_forge = use_case(connections.try_out)
    sync_forge = use_case(connections.sync_now)
    forge_hook = use_case(connections.hook)
    assign = use_case(issues.assign)
    plan_issues = use_case(issues.plan)
    pulls = use_case(legion.service.forge.pulls.listed)
    pull = use_case(legion.service.forge.pulls.page)
    merge_pulls = use_case(legion.service.forge.pulls.merge)
    tried = use_case(legion.service.forge.pulls.tried)

    # The page
    offer_device = use_case(web.offer)
    devices = use_case(web.listed)
    revoke_device = use_case(web.revoke)
