"""Asks a finished conversation a question: a fork of it answers in a run of its own, which can only read.

The conversation, its worktree and the board stay as they are. The next daemon stops a run that outlived its own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from legion.domain.agents.teams import READING
from legion.domain.errors import LegionError, Retryable, StateConflict
from legion.domain.runs import Outcome, Run
from legion.drivers import registry
from legion.drivers.profile import DriverProfile, RunInput
from legion.jobs.agent import model_run
from legion.jobs.agent.model_run import AgentProgram, RunPaths
from legion.jobs.agent.resume_prompt import final_message
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.supervise import outcome
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import sandbox
from legion.runner import launch
from legion.runner.journal import read_journal
from legion.runner.spec import UnreadableSpec, read_spec, write_spec
from legion.store.work import runs

PATIENCE = 540.0
"""Seconds; the client waits ten minutes."""
_RULES = """\
A person asks you about this conversation, after its end. Answer from what you know and what you can read.
You can change nothing, and nothing that you announce will happen."""


class NotAnswered(LegionError):
    """The question got no answer; the message says why."""


@dataclass(frozen=True, kw_only=True)
class AskedConversation:
    project: ProjectContext
    driver: DriverProfile
    transcript: Path
    id: str
    tree: Path | None
    """Where it worked; it can be read, if it still exists. None: it answers from what it knows."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    text: str
    usd: float | None
    seconds: float


class _AskRun(Run):
    """Its row is for the books alone: nothing on the board waits for it."""

    @property
    def name(self) -> str:
        return f"ask-{self.project}-run-{self.id}"


def of_run(context: Trees, run: Run) -> AskedConversation:
    """The conversation of a run that has ended. Raises StateConflict where it cannot be asked."""
    if run.ended_at is None:
        how = f"`legion tell {run.ticket} TEXT` reaches it" if run.ticket is not None else "wait for its end"
        raise StateConflict(f"This conversation is not finished: {how}.")
    project = context.project(run.project)
    driver = _driver(context, run)
    transcript = driver.transcript(project.agents / run.seat, run.conversation) if driver.capabilities.rewinds else None
    if transcript is None:
        raise StateConflict(
            f"{driver.title} left no conversation of run {run.id} that can be asked; `legion log` shows its output."
        )
    tree = project.worktrees.path(run.seat)
    return AskedConversation(project=project, driver=driver, transcript=transcript, id=run.conversation, tree=tree)


def ask(
    context: Context, asked: AskedConversation, question: str, *, model: str = "", role: str = "question"
) -> Answer:
    """Its cost is the project's, under this role. Raises NoModelAccess, NotAnswered or Retryable."""
    answer = _asked(context, asked, question, model, role)
    if answer is None:
        # After a landing its worktree is removed, at any moment.
        answer = _asked(context, replace(asked, tree=None), question, model, role)
    assert answer is not None, "without a worktree, none can go"
    return answer


def _asked(context: Context, asked: AskedConversation, question: str, model: str, role: str) -> Answer | None:
    """None: its worktree went before it could answer."""
    began = context.clock()
    with context.store.write() as tx:
        this_run = _AskRun(**asdict(runs.start_ask(tx, asked.project.id, role)))
    folder = context.data.runs / this_run.name
    try:
        _prepare(context, asked, this_run, folder, question, model)
        context.launcher.start(folder)
        ended = launch.wait(folder)
    finally:
        model_run.revoke_pass(context, this_run)
        for event in read_journal(folder):
            outcome.record_usage(context, this_run, event)
        with context.store.write() as tx:
            runs.end_ask(tx, this_run.id)
    how, detail = outcome.run_outcome(ended)
    if how is not Outcome.FINISHED and asked.tree is not None and not asked.tree.is_dir():
        return None
    if how in (Outcome.LIMITED, Outcome.LOST, Outcome.STOPPED):
        raise Retryable(f"The question was not answered: {detail}. Ask again later.")
    text = final_message(folder).strip()
    if how is not Outcome.FINISHED or not text:
        raise NotAnswered(f"The question was not answered: {detail}.")
    costs = [event.facts.get("cost_usd") for event in read_journal(folder) if event.kind == "result"]
    usd = next((float(cost) for cost in reversed(costs) if isinstance(cost, int | float)), None)
    return Answer(text=text, usd=usd, seconds=context.clock() - began)


def _prepare(context: Trees, asked: AskedConversation, this_run: Run, folder: Path, question: str, model: str) -> None:
    state, given = folder / "state", folder / "given"
    for place in (state, given):
        place.mkdir(parents=True, mode=0o700)
    tree = asked.tree if asked.tree is not None and asked.tree.is_dir() else given
    asked.driver.take_transcript(asked.transcript, asked.id, state, tree)
    chosen = AgentProgram(driver=asked.driver, timeout=PATIENCE)
    paths = RunPaths(
        tree=tree,
        state=state,
        given=given,
        env=sandbox.environment(context, asked.project, {"LEGION_STATE": str(state)}),
        sandbox=sandbox.sandbox(context, asked.project, writable=(state,), readable=(tree, given)),
    )
    run_input = RunInput(
        prompt=question,
        resume_prompt=question,
        rules=_RULES,
        model=model,
        allowance=context.user.claude.budget_usd or None,
        tools=READING,
        reads_instructions=False,
        role=this_run.role,
        fork_of=asked.id,
    )
    write_spec(folder, model_run.spec(context, this_run, chosen, run_input, paths))


def _driver(context: Board, run: Run) -> DriverProfile:
    try:
        return read_spec(context.data.runs / run.name).profile
    except UnreadableSpec:
        return registry.default()
