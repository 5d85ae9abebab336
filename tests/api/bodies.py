"""A body for each operation that needs one, and the operations that an empty board refuses with it."""

from __future__ import annotations

from legion.domain.errors import BadInput, NotAllowed, NotFound, StateConflict
from legion.wire.adoption import AdoptConversation
from legion.wire.agents import (
    ClaimTicket,
    FireAgent,
    HireAgent,
    InterruptAgent,
    Plan,
    PlanVerdict,
    SetDelegation,
    SubmitTicket,
)
from legion.wire.controls import EditTicket, EpicGate, MoveInQueue, SetNumbers, TryChanges
from legion.wire.conversations import AskConversation
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.drivers import AddDriver
from legion.wire.forge import AddForge, AssignIssues, MergePulls, PlanIssues, TriedByHand
from legion.wire.imports import ImportTicket, ImportTickets
from legion.wire.leader import ReadConversation
from legion.wire.lessons import AcceptLesson
from legion.wire.live import FollowOutput
from legion.wire.machine_pages import RemoveMachine
from legion.wire.machines import InviteMachine
from legion.wire.mail import ArchiveMail, Broadcast, FindMail, NewMessage, ReadMail
from legion.wire.memories import Forget, Remember
from legion.wire.notes import AddNote, CloseNote
from legion.wire.plans import (
    ApprovePlan,
    EpicBudget,
    NewPlan,
    RejectPlan,
    ReplanEpic,
    SavePlan,
    SplitTicket,
    StopEpic,
)
from legion.wire.projects import AddProject, ShellVariables, Trust, TryChecks
from legion.wire.providers import (
    AddProvider,
    BeginLogin,
    FinishLogin,
    RemoveProvider,
    RemoveRoute,
    SetRoute,
    TryProvider,
    UseAccount,
)
from legion.wire.questions import AnswerQuestion, MessageText
from legion.wire.races import NewRace
from legion.wire.routines import AddRoutine, OfRoutine
from legion.wire.sessions import BindSession, DeleteSession, EpicBranch, NamedSession, NewSession
from legion.wire.teams import SaveDefinition
from legion.wire.templates import RunTemplate
from legion.wire.terminal import Attach, AttachAgent, GiveBackAgent, NewByHand, OfferWork, OpenShell
from legion.wire.tickets import RewindTo, SetRecording
from legion.wire.tools import ToolCall
from legion.wire.web import OfferDevice, OpenWeb, RevokeDevice

BODIES: dict[str, object] = {
    "add_forge": AddForge(cwd="CWD", kind="github", address="nowhere"),
    "assign": AssignIssues(cwd="CWD", issues=[1]),
    "plan_issues": PlanIssues(cwd="CWD", issues=[1]),
    "merge_pulls": MergePulls(cwd="CWD"),
    "tried": TriedByHand(),
    "remove_machine": RemoveMachine(),
    "invite_machine": InviteMachine(name="desk"),
    "dispatch": Dispatch(cwd="CWD", tickets=[NewTicket(title="A")]),
    "import_tickets": ImportTickets(
        cwd="CWD", tool="beads", tickets=[ImportTicket(origin="bd-1", ticket=NewTicket(title="A"))]
    ),
    "new_session": NewSession(cwd="CWD", branch="nowhere"),
    **dict.fromkeys(("open_epic_branch", "land_epic"), EpicBranch(cwd="CWD", epic="")),
    **dict.fromkeys(("switch_session", "rebuild_session", "rebase_session"), NamedSession(cwd="CWD", name="default")),
    **dict.fromkeys(("complete_session", "drop_session", "recreate_session"), NamedSession(cwd="CWD", name="default")),
    "delete_session": DeleteSession(cwd="CWD", name="default"),
    "bind_session": BindSession(cwd="CWD", name="default", branch="main"),
    "rewind": RewindTo(to="1"),
    "attach": Attach(),
    "attach_agent": AttachAgent(id="nobody"),
    "give_back_agent": GiveBackAgent(id="nobody"),
    "new_by_hand": NewByHand(cwd="CWD", name="Try it"),
    "checkout": OfferWork(),
    "push": OfferWork(),
    "shell": OpenShell(),
    "race": NewRace(count=2),
    "output": FollowOutput(cwd="CWD", seen={"1": 0}),
    "tell": MessageText(text="Hello."),
    "switch_recording": SetRecording(on=False),
    "answer": AnswerQuestion(choice="yes"),
    "add_project": AddProject(path="CWD"),
    "trust": Trust(cwd="CWD", hashes=[]),
    "hire": HireAgent(task="Stand there.", cwd="CWD"),
    "fire": FireAgent(id="tess"),
    "delegate": SetDelegation(id="tess", on=True),
    "interrupt_agent": InterruptAgent(id="tess"),
    "tell_agent": NewMessage(to="tess", text="Hello."),
    "broadcast": Broadcast(text="Hello."),
    "claim": ClaimTicket(),
    "submit": SubmitTicket(),
    "propose_plan": Plan(text="First this."),
    "decide_plan": PlanVerdict(agent="tess", approve=True),
    "mail": ReadMail(),
    "save_role": SaveDefinition(cwd="CWD", name="pm", text='about = "a"\npart = "advise"\nprompt = "b"\n'),
    "save_team": SaveDefinition(cwd="CWD", name="two", new=True, text='about = "a"\nroles = ["engineer"]\n'),
    "try_checks": TryChecks(cwd="CWD"),
    "use_shell": ShellVariables(path="CWD", variables={}),
    "add_driver": AddDriver(name="claude", text=""),
    "add_provider": AddProvider(name="anthropic", key="sk-1"),
    "remove_provider": RemoveProvider(name="anthropic"),
    "begin_login": BeginLogin(name="copilot"),
    "finish_login": FinishLogin(id="1"),
    "set_route": SetRoute(model="claude-*", to=["ollama/qwen3"]),
    "remove_route": RemoveRoute(model="claude-*"),
    "try_provider": TryProvider(name="anthropic"),
    "use_tool": ToolCall(),
    "offer_device": OfferDevice(),
    "revoke_device": RevokeDevice(),
    "open_web": OpenWeb(host="127.0.0.2"),
    "plan": NewPlan(cwd="CWD", goal="Users can log in."),
    "approve_plan": ApprovePlan(),
    "reject_plan": RejectPlan(why="Smaller."),
    "save_plan": SavePlan(text="", version=1),
    "split": SplitTicket(),
    "replan": ReplanEpic(cwd="CWD", epic="x"),
    "epic_budget": EpicBudget(cwd="CWD", epic="x", usd=1),
    "stop_epic": StopEpic(cwd="CWD", epic="x"),
    "run_template": RunTemplate(cwd="CWD", name="bug", values={"bug": "x"}, dry_run=True),
    "edit": EditTicket(priority=3),
    "move_in_queue": MoveInQueue(to="first"),
    "try_changes": TryChanges(cwd="CWD"),
    "set_numbers": SetNumbers(cwd="CWD", workers=3),
    "epic_gate": EpicGate(cwd="CWD", epic="x", gate="person"),
    "use_account": UseAccount(name="anthropic"),
    "find_mail": FindMail(text="x"),
    "archive_mail": ArchiveMail(),
    "remember": Remember(cwd="CWD", text="Be quick."),
    "forget": Forget(cwd="CWD"),
    "conversation": ReadConversation(cwd="CWD"),
    "accept_lesson": AcceptLesson(cwd="CWD"),
    "add_routine": AddRoutine(cwd="CWD", starts="every day 07:00", what="Look around."),
    "remove_routine": OfRoutine(cwd="CWD"),
    "run_routine": OfRoutine(cwd="CWD"),
    "add_note": AddNote(cwd="CWD", text="We stay on Python 3.11."),
    "close_note": CloseNote(cwd="CWD"),
    "ask_conversation": AskConversation(id="1", question="Why?"),
    "adopt": AdoptConversation(cwd="CWD"),
}
REFUSED = {
    **dict.fromkeys(("complete_session", "delete_session", "recreate_session"), StateConflict),
    **dict.fromkeys(("drop_session", "new_session", "land_epic"), NotFound),
    "open_epic_branch": BadInput,
    "driver": NotFound,
    "add_driver": BadInput,
    "remove_driver": NotFound,
    "trust": BadInput,
    "remove_project": StateConflict,
    "rewind": StateConflict,
    "race": BadInput,
    "race_page": NotFound,
    "undo": StateConflict,
    "attach": StateConflict,
    "attach_agent": NotFound,
    "give_back_agent": NotFound,
    "submit_ticket": StateConflict,
    "push": StateConflict,
    "shell": StateConflict,
    "tell": StateConflict,
    "interrupt": StateConflict,
    "pause_ticket": StateConflict,
    "resume_ticket": StateConflict,
    "answer": NotFound,
    "cassette": NotFound,
    "stop": StateConflict,
    "retry": StateConflict,
    "bounce": StateConflict,
    "claim": BadInput,
    "submit": BadInput,
    "propose_plan": BadInput,
    "interrupt_agent": StateConflict,
    "decide_plan": StateConflict,
    "remove_role": NotFound,
    "remove_team": NotFound,
    "remove_provider": NotFound,
    "remove_route": NotFound,
    "begin_login": NotAllowed,
    "set_route": NotFound,
    "finish_login": NotFound,
    "try_provider": NotFound,
    "use_tool": NotFound,
    "web_addresses": BadInput,
    "open_web": BadInput,
    "close_web": BadInput,
    **dict.fromkeys(("plan_page", "approve_plan", "reject_plan", "retry_plan", "drop_plan"), NotFound),
    **dict.fromkeys(("plan_text", "save_plan", "epic", "epic_budget", "replan", "stop_epic"), NotFound),
    **dict.fromkeys(
        ("template_from", "forget", "close_note", "accept_lesson", "remove_routine", "run_routine"), NotFound
    ),
    "split": StateConflict,
    **dict.fromkeys(("land", "edit", "move_in_queue"), StateConflict),
    "epic_gate": NotFound,
    "use_account": NotFound,
    **dict.fromkeys(("export_conversation", "ask_conversation", "adopt"), NotFound),
    "handoff": StateConflict,
    "add_forge": BadInput,
    **dict.fromkeys(
        ("remove_forge", "try_forge", "sync_forge", "forge_hook", "assign", "plan_issues", "merge_pulls"), NotFound
    ),
    "pull": NotFound,
    **dict.fromkeys(("machine_log", "pause_machine", "resume_machine", "drain_machine"), NotFound),
    **dict.fromkeys(("remove_machine", "update_machine"), NotFound),
    "invite_machine": NotAllowed,
}
"""What is not possible on a board with one landed ticket and one idle agent; all else answers."""
