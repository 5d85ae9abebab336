"""The rows of wire/operations that are one use case each. operations.py has the others."""

from __future__ import annotations

from legion.service import questions, web
from legion.service.agents import attach as agent_attaching
from legion.service.agents import claim as claiming
from legion.service.agents import delegation, plan_approval
from legion.service.agents import hire as hiring
from legion.service.agents import mail as mailing
from legion.service.forge import connections, issues
from legion.service.forge import pulls as forge_pulls
from legion.service.leader import chat
from legion.service.leader import lessons as learning
from legion.service.leader import notes as noting
from legion.service.leader import routines as regular
from legion.service.machines import listing, steer
from legion.service.plans import create, decisions, epic_templates, pages
from legion.service.plans import templates as plan_templates
from legion.service.projects import collect, epic_branches, registry, trials
from legion.service.projects import memories as remembering
from legion.service.projects import numbers as project_numbers
from legion.service.projects import sessions as session_cases
from legion.service.projects import teams as definitions
from legion.service.projects import trust as trusting
from legion.service.providers import agent_programs, catalog, login, probe
from legion.service.providers import routes as routing
from legion.service.tickets import attach as attaching
from legion.service.tickets import by_hand, dispatch, epic_change, imports, queue, record, session_rebase, try_tree
from legion.service.tickets import edit as editing
from legion.service.tickets import freeze as freezing
from legion.service.tickets import race as racing
from legion.service.tickets import review as reviewing
from legion.service.tickets import rewind as rewinding
from legion.service.tickets import shell as shells
from legion.service.tickets import undo as undoing
from legion.service.use_case import by_caller, use_case
from legion.service.views import doctor as diagnosis
from legion.service.views import epic as epics
from legion.service.views import installation, output, status
from legion.wire.operations import Operations


class PlainOperations(Operations):
    """In the order of the rooms; `use_case` and `by_caller` say what each is called with."""

    # Sessions
    sessions = use_case(session_cases.session_list)
    branches = use_case(session_cases.branch_list)
    new_session = use_case(session_cases.new)
    switch_session = use_case(session_cases.switch)
    complete_session = use_case(session_cases.complete)
    open_epic_branch = use_case(epic_branches.open_branch)
    land_epic = use_case(epic_change.land)
    delete_session = use_case(session_cases.delete)
    drop_session = use_case(session_cases.drop)
    bind_session = use_case(session_cases.bind)
    rebuild_session = use_case(session_cases.rebuild)
    rebase_session = use_case(session_rebase.rebase)
    recreate_session = use_case(session_cases.recreate)

    # Work from other tools
    import_tickets = use_case(imports.import_tickets)

    # Projects
    add_project = use_case(registry.add)
    use_shell = use_case(registry.use_shell)
    remove_project = use_case(registry.remove)
    trustable = use_case(trusting.trustable)
    trust = use_case(trusting.trust)
    projects = use_case(status.all_projects)
    worktrees = use_case(installation.worktrees)
    doctor = use_case(diagnosis.doctor)
    trial = use_case(trials.page)
    try_checks = use_case(trials.try_checks)
    config = use_case(installation.config)
    preview_collect = use_case(collect.preview)
    numbers = use_case(project_numbers.numbers)
    set_numbers = use_case(project_numbers.set_numbers)
    freeze = use_case(freezing.freeze)
    thaw = use_case(freezing.thaw)

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
    drop = use_case(dispatch.drop)
    pause_ticket = use_case(dispatch.pause)
    resume_ticket = use_case(dispatch.resume)
    rewind = use_case(rewinding.rewind)
    race = use_case(racing.race)
    race_page = use_case(racing.page)
    undo = use_case(undoing.undo)
    review = use_case(reviewing.review)
    switch_recording = use_case(record.set_recording)
    land = use_case(queue.land)
    edit = use_case(editing.edit)
    move_in_queue = use_case(queue.move)
    merge_queue = use_case(queue.page)
    try_changes = use_case(try_tree.try_changes)

    # Terminals
    attach = use_case(attaching.attach)
    give_back = use_case(attaching.give_back)
    attach_agent = use_case(agent_attaching.attach)
    give_back_agent = use_case(agent_attaching.give_back)
    shell = use_case(shells.shell)
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
    templates = use_case(plan_templates.template_list)
    template = use_case(plan_templates.template_page)
    run_template = use_case(plan_templates.run)
    template_from = use_case(epic_templates.from_epic)
    epic = use_case(epics.epic_page)
    epic_budget = use_case(epics.set_budget)
    epic_gate = use_case(epics.set_gate)
    stop_epic = use_case(epics.stop_epic)

    # Memories
    remember = use_case(remembering.remember)
    memories = use_case(remembering.listed)
    forget = use_case(remembering.forget)

    # Leaders
    conversation = use_case(chat.conversation)
    add_routine = use_case(regular.add)
    routines = use_case(regular.listed)
    remove_routine = use_case(regular.remove)
    run_routine = use_case(regular.run)
    lessons = by_caller(learning.listed)
    accept_lesson = by_caller(learning.accept)
    notes = by_caller(noting.listed)
    add_note = by_caller(noting.add)
    close_note = by_caller(noting.close)

    # Questions
    inbox = use_case(questions.inbox)
    answer = use_case(questions.answer)

    # Agents and mail
    hire = by_caller(hiring.hire)
    fire = by_caller(hiring.fire)
    interrupt_agent = by_caller(hiring.interrupt)
    delegate = by_caller(delegation.delegate)
    tell_agent = by_caller(mailing.tell)
    broadcast = by_caller(mailing.broadcast)
    mail = by_caller(mailing.read)
    find_mail = use_case(mailing.find)
    archive_mail = use_case(mailing.archive)
    claim = by_caller(claiming.claim)
    submit = by_caller(claiming.submit)
    propose_plan = by_caller(plan_approval.propose)
    decide_plan = by_caller(plan_approval.decide)

    # Roles and teams
    roles = use_case(definitions.role_list)
    role = use_case(definitions.role_page)
    teams = use_case(definitions.team_list)
    team = use_case(definitions.team_page)

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
    routes = use_case(routing.listed)
    set_route = use_case(routing.set_route)
    remove_route = use_case(routing.remove_route)
    models = use_case(routing.models)
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
    pulls = use_case(forge_pulls.listed)
    pull = use_case(forge_pulls.page)
    merge_pulls = use_case(forge_pulls.merge)
    tried = use_case(forge_pulls.tried)

    # The page
    offer_device = use_case(web.offer)
    devices = use_case(web.listed)
    revoke_device = use_case(web.revoke)
