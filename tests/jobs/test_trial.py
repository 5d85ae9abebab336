"""The trial of the checks: what it finds, when it is due, and that no change lands on checks that are blind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from legion.config.files.user import CurrentSettings, UserConfig
from legion.config.sections.machine import NetworkMode, SandboxMode
from legion.domain.checks import CheckResult
from legion.domain.errors import StateConflict
from legion.domain.events import EventKind
from legion.domain.questions import Question
from legion.domain.review.trial import WAITS, Sight, Trial
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets.ticket import State, Unpark
from legion.jobs.background.trial_runner import TrialRunner
from legion.jobs.checks import execution, trial
from legion.jobs.checks.job import confirmed
from legion.jobs.landing.job import land
from legion.jobs.workspace import shell_variables
from legion.jobs.workspace.command import CancelToken
from legion.store import events
from legion.store.board import questions, receipts, tickets
from legion.store.work import claims
from legion.wire.mail import AnswerQuestion
from legion.wire.projects import DoctorFinding, TrialPage, TryChecks
from tests.support.board import Board
from tests.support.repository import Repository
from tests.support.settings import PLAIN_SETTINGS

TEST = '[checks.test]\nrun = "for one in lib/*; do . ./$one; done; test $(price) = 7"\n'
SEES = f'{TEST}[checks.docs]\nrun = "true"\n'
BLIND = """\
[setup]
run = "mkdir -p deps/lib && echo 'price() { echo 7; }' > deps/lib/price.sh"
[checks.test]
run = "for one in deps/lib/*; do . ./$one; done; test $(price) = 7"
"""
COPIES = """\
[setup]
run = "mkdir -p deps && cp -r lib deps"
[checks.test]
run = "for one in deps/lib/*; do . ./$one; done; test $(price) = 7"
"""
CHILD = """\
[setup]
run = "mkdir -p deps/lib && printf 'price() { echo 7; } # the price\\n' > deps/lib/price.sh"
[checks.test]
run = "for one in lib/*; do . ./$one; done; test $(price) = 7 && sh -c '. ./deps/$0; test $(price) = 7' $one"
"""
FIXABLE = """\
[setup]
run = "mkdir -p deps && echo 'price = 7' > deps/price.py"
[checks.test]
run = "python3 check.py"  # the whole suite
timeout = 30
"""
PYTHON = {
    "setup.py": "find_packages('src')\n",
    "src/price.py": "price = 7  # of one apple\n",
    "check.py": "import sys\nsys.path.append('deps')\nfrom price import price\nassert price == 7\n",
}
SOURCE = {"lib/price.sh": "price() { echo 7; } # the price\n", "docs/made.sh": "exit 1\n"}

Make = Callable[..., Board]
PROJECT = 1


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Board] = []

    def board(config: str, source: Mapping[str, str] = SOURCE, *, committed: bool = True) -> Board:
        theirs = Repository(tmp_path / "shop", config)
        theirs.commit("source", dict(source))
        if not committed:
            theirs.git("rm", "--quiet", "--cached", "legion.toml")
            theirs.git("commit", "--quiet", "-m", "Without settings")
            (theirs.root / ".git/info/exclude").write_text("legion.toml\n")
        theirs.git("checkout", "--quiet", "-b", "change")
        theirs.commit("A change", {"change.txt": "x\n"})
        theirs.git("checkout", "--quiet", "main")
        made.append(Board(tmp_path))
        use(made[-1], UserConfig())
        return made[-1]

    yield board
    for one in made:
        one.context.launcher.close()
        one.close()


def use(board: Board, settings: UserConfig) -> None:
    object.__setattr__(board.context, "settings", CurrentSettings(settings))


def tried(board: Board) -> Trial:
    return trial.run(board.context, board.context.project(PROJECT), CancelToken())


def sights(found: Trial) -> dict[str, Sight]:
    return {one.name: one.sight for one in found.checks}


def page(board: Board) -> TrialPage:
    return board.service.trial(board.cwd)


def finding(board: Board, name: str = "checks see the code") -> DoctorFinding:
    (one,) = [found for found in board.service.doctor(board.cwd).findings if found.name == name]
    return one


def tries(board: Board) -> int:
    with board.store.read() as tx:
        return sum(1 for event in events.after(tx, 0) if event.kind is EventKind.TRIED)


def landing(board: Board) -> None:
    """The land job, as the scheduler starts it."""
    with board.store.write() as tx:
        claim = claims.claim(tx, JobKind.LAND, PROJECT, "here")
    land(board.context, claim)


def state(board: Board, ticket: int) -> tuple[State, str]:
    with board.store.read() as tx:
        one = tickets.get(tx, ticket)
    return one.state, one.reason


def test_checks_that_notice_the_error_are_trusted_once_and_others_may_look_elsewhere(make: Make):
    board = make(SEES)
    assert (page(board).state, finding(board).known) == ("due", False)
    found = tried(board)
    assert sights(found) == {"test": Sight.SEES, "docs": Sight.ELSEWHERE}
    assert found.lines[-1] == "sees the code: yes"
    assert (finding(board).ok, finding(board).known) == (True, True)
    tried(board)
    assert tries(board) == 1
    board.service.try_checks(TryChecks(cwd=board.cwd, again=True))
    assert page(board).state == "due"
    tried(board)
    assert tries(board) == 2


def test_no_change_lands_on_a_blind_check_before_a_person_trusts_it_and_receipts_say_who(make: Make):
    board = make(BLIND)
    board.put(1, state="landing")
    landing(board)
    assert state(board, 1) == (State.PARKED, WAITS)
    shown = page(board)
    assert (shown.state, shown.sees, shown.trusted) == ("done", "no", False)
    assert "`test` stays green when the code is broken" in shown.doubts[0]
    assert not finding(board).ok
    with board.store.read() as tx:
        (question,) = questions.open_ones(tx)
    assert question.id == shown.question
    with board.store.write() as tx:
        tickets.move(tx, 1, Unpark())
    landing(board)
    assert state(board, 1) == (State.PARKED, WAITS)
    with board.store.read() as tx:
        assert len(questions.open_ones(tx)) == 1, "one question for the project"
    board.service.answer(question.id, AnswerQuestion(choice="trust"))
    assert state(board, 1)[0] is State.LANDING
    landing(board)
    assert state(board, 1)[0] is State.DONE
    target = board.context.project(PROJECT).target
    with board.store.read() as tx:
        made = receipts.for_commit(tx, PROJECT, target)
    assert made
    assert all(one.trusted for one in made)
    assert "every receipt says so" in finding(board).advice
    assert finding(board).ok
    assert not finding(board).known


def test_a_first_landing_waits_for_the_trial_and_then_lands(make: Make):
    board = make(TEST)
    board.put(1, state="landing")
    landing(board)
    assert state(board, 1)[0] is State.DONE
    assert tries(board) == 1
    with board.store.read() as tx:
        assert not any(one.trusted for one in receipts.for_commit(tx, PROJECT, board.change))


def test_a_fixed_check_is_tried_again_and_what_waited_goes_on(make: Make):
    board = make(BLIND)
    board.put(1, state="landing")
    landing(board)
    assert state(board, 1)[0] is State.PARKED
    board.repository.commit("fix", {"legion.toml": TEST})
    board.trust()
    landing(board)
    found = tried(board)
    assert sights(found) == {"test": Sight.SEES}
    assert state(board, 1)[0] is State.LANDING
    with board.store.read() as tx:
        assert questions.open_ones(tx) == ()


def asked(board: Board) -> Question:
    with board.store.read() as tx:
        (question,) = questions.open_ones(tx)
    return question


def test_the_answer_fix_changes_legion_toml_as_the_question_shows_and_what_waited_goes_on(make: Make):
    board = make(FIXABLE, PYTHON)
    board.put(1, state="landing")
    landing(board)
    question = asked(board)
    old, new = '"python3 check.py"', '"PYTHONPATH=\\"$PWD/src\\" python3 check.py"'
    assert question.choices == ("fix", "leave", "trust")
    assert f"-run = {old}  # the whole suite\n+run = {new}  # the whole suite\n" in question.words
    assert page(board).remedy.endswith(f"; or answer question {question.id} in `legion inbox`: fix, leave, trust")
    said = board.service.answer(question.id, AnswerQuestion(choice="fix"))
    assert "Commit it" in said.message
    file = board.repository.root / "legion.toml"
    assert file.read_text() == FIXABLE.replace(old, new)
    board.repository.git("commit", "--quiet", "--all", "-m", "As proposed")
    landing(board)
    assert sights(tried(board)) == {"test": Sight.SEES}
    assert state(board, 1)[0] is State.LANDING


def test_a_legion_toml_that_is_not_committed_is_fixed_and_tried_at_once(make: Make):
    board = make(FIXABLE, PYTHON, committed=False)
    tried(board)
    assert "tried again" in board.service.answer(asked(board).id, AnswerQuestion(choice="fix")).message
    assert page(board).state == "due"
    assert sights(tried(board)) == {"test": Sight.SEES}


def test_a_legion_toml_that_the_person_changed_meanwhile_is_not_overwritten(make: Make):
    board = make(FIXABLE, PYTHON)
    tried(board)
    file = board.repository.root / "legion.toml"
    file.write_text(f"{FIXABLE}# mine\n")
    with pytest.raises(StateConflict, match="not overwritten"):
        board.service.answer(asked(board).id, AnswerQuestion(choice="fix"))
    assert file.read_text() == f"{FIXABLE}# mine\n"
    assert asked(board).settled_at is None


def test_a_trial_is_due_again_after_a_change_of_lock_file_setup_or_layout_and_of_nothing_else(make: Make):
    board = make(TEST)
    count = 1
    tried(board)
    for due, changed in (
        (False, {"lib/price.sh": "price() { echo 7; } # the same price\n"}),
        (True, {"requirements.txt": "x\n"}),
        (True, {"legion.toml": f'[setup]\nrun = "true"\n{TEST}'}),
        (True, {"packages/a/package.json": "{}", "packages/a/src/run.sh": "true\n"}),
        (False, {"packages/a/src/deeper/run.sh": "true\n"}),
        (True, {"src/price.sh": "price() { echo 7; }\n"}),
    ):
        board.repository.commit("more", changed)
        board.trust()
        landing(board)
        tried(board)
        count += due
        assert tries(board) == count, changed


def test_the_first_flaky_verdict_of_a_check_makes_the_trial_due_again(make: Make, tmp_path: Path):
    mark = tmp_path / "red-once"
    board = make(TEST.replace('"\n', f' && if test -e {mark}; then rm {mark}; false; fi"\n'))
    plain = UserConfig()
    use(board, replace(plain, sandbox=replace(plain.sandbox, mode=SandboxMode.OFF)))
    tried(board)
    project = board.context.project(PROJECT)
    mark.touch()
    found = execution.test(board.context, project, board.change, execution.project_checks(project))
    assert not found.green
    assert confirmed(board.context, project, found, CancelToken()).green
    assert page(board).state == "due"
    tried(board)
    assert (page(board).state, tries(board)) == ("done", 2)


@pytest.mark.parametrize("by", ["doctor --try", "the shell"])
def test_a_check_that_passes_after_the_machine_got_what_was_missing_is_not_flaky(make: Make, tmp_path: Path, by: str):
    tool = tmp_path / "tool"
    board = make(TEST.replace('"\n', f' && test -e {tool}"\n'))
    plain = UserConfig()
    use(board, replace(plain, sandbox=replace(plain.sandbox, mode=SandboxMode.OFF)))
    assert not tried(board).complete
    tool.touch()
    project = board.context.project(PROJECT)
    if by == "the shell":
        repository = Path(project.record.common_dir)
        shell_variables.report(board.context, repository, board.repository.root, {"NVM_DIR": "/nvm"})
        test = execution.test_unless_cancelled
    else:
        test = execution.run_again
    wanted = execution.project_checks(project)
    assert test(board.context, project, project.record.target, wanted, CancelToken()).green
    with board.store.read() as tx:
        assert not events.since(tx, PROJECT, EventKind.FLAKY, 0.0)


def test_a_copy_that_setup_makes_again_for_each_change_is_no_reason_to_doubt(make: Make):
    assert sights(tried(make(COPIES))) == {"test": Sight.SEES}


def test_the_packages_that_setup_installed_are_counted(make: Make):
    made = (
        "node_modules/a/package.json",
        "node_modules/@b/c/package.json",
        "venv/x-1.dist-info/METADATA",
        "venv/x/y.json",
    )
    setup = " && ".join(f"mkdir -p $(dirname {path}) && touch {path}" for path in made)
    found = tried(make(f'[setup]\nrun = "{setup}"\n{TEST}'))
    assert found.packages == 3
    assert ", 3 packages, ok" in found.lines[0]


def test_a_child_process_that_runs_an_old_copy_is_found(make: Make):
    """The check itself runs the tree's own file, so an error there is noticed; only its child runs the copy."""
    found = tried(make(CHILD))
    assert sights(found) == {"test": Sight.SEES}
    assert found.copies == ("deps/lib/price.sh",)
    assert found.doubts


def test_each_package_is_broken_by_itself_and_one_that_no_check_sees_is_named(make: Make):
    source = {
        **{f"packages/{name}/package.json": "{}" for name in "ab"},
        "packages/a/run.sh": "a() { echo 1; }\n",
        "packages/b/run.sh": "b() { echo 1; }\n",
    }
    found = tried(
        make(
            '[checks.test]\nrun = "sh check.sh; for one in packages/a/*.sh; do . ./$one; done; test $(a) = 1"\n', source
        )
    )
    assert sights(found) == {"test": Sight.SEES}
    assert found.unseen == ("packages/b",)
    assert found.doubts == ("no check notices an error in `packages/b`",)
    assert "a check that runs them" in found.remedy("")


def test_a_linter_is_judged_by_an_error_that_it_would_see(make: Make):
    lint = '[checks.lint]\nrun = "for one in lib/*; do sh -n $one; done"\n'
    config = f'{TEST}{lint}[checks.types]\nrun = "true"\n'
    found = tried(make(config))
    assert sights(found) == {"test": Sight.SEES, "lint": Sight.SEES, "types": Sight.BLIND}
    assert "`types` stays green" in found.doubts[0]


def test_a_red_base_shows_nothing_and_doctor_says_it_in_the_words_of_the_check(make: Make):
    board = make('[checks.test]\nrun = "echo no such thing; false"\n')
    found = tried(board)
    assert sights(found) == {"test": Sight.RED_BASE}
    assert found.doubts == ()
    assert "no such thing" in finding(board, "the target passes").detail
    assert not finding(board, "the target passes").ok
    assert "correct the check" in page(board).remedy
    assert board.service.status(board.cwd).projects[0].baseline == "red"
    assert not finding(board).known
    tried(board)
    assert tries(board) == 1, "the same target is not tried again by itself"


def test_a_failing_setup_is_no_failing_check(make: Make):
    board = make(f'[setup]\nrun = "echo no such option; exit 3"\n{TEST}')
    found = tried(board)
    assert "no such option" in found.setup_fault
    assert [one.base for one in found.checks] == [CheckResult.SETUP]
    assert "no such option" in finding(board, "setup").detail
    assert "correct [setup]" in finding(board, "setup").advice
    assert "no such option" in "".join(board.service.status(board.cwd).projects[0].notes)
    assert not finding(board, "setup").ok
    assert any("[setup] says" in line or "setup" in line for line in page(board).lines)


def test_a_setup_whose_network_lacks_a_host_names_the_host_and_what_opens_it(make: Make):
    fetch = "python3 -c 'import urllib.request as net; net.urlopen(\\\"http://shop.invalid/\\\")'"
    board = make(f'[setup]\nrun = "{fetch}"\n{TEST}')
    plain = UserConfig()
    use(board, replace(plain, sandbox=replace(plain.sandbox, network=NetworkMode.LIST)))
    found = tried(board)
    assert "does not let it reach shop.invalid: `sandbox.allow`" in found.lines[1]
    assert "sandbox.allow" in finding(board, "setup").detail


def test_without_source_files_a_person_is_asked_once(make: Make):
    found = tried(make('[checks.test]\nrun = "sh check.sh"\n', {"a.txt": "x\n"}))
    assert sights(found) == {"test": Sight.NOTHING_TO_BREAK}
    assert "no source files" in found.doubts[0]


def test_a_change_that_makes_a_red_target_green_lands_after_a_trial_of_its_own(make: Make):
    board = make('[checks.test]\nrun = "test -e change.txt && for one in lib/*; do . ./$one; done"\n')
    board.put(1, state="landing")
    landing(board)
    assert state(board, 1)[0] is State.DONE
    assert tries(board) == 2


def test_a_project_that_cannot_be_tried_stops_no_other(make: Make):
    board = make(TEST)
    runner = TrialRunner(board.context)
    assert [one.id for one in runner.due()] == [PROJECT]
    hub = board.context.project(PROJECT).hub.path
    hub.rename(hub.with_name("gone.git"))
    assert runner.due() == []
    hub.with_name("gone.git").rename(hub)
    assert [one.id for one in runner.due()] == [PROJECT]


def test_a_person_may_switch_it_off(make: Make):
    board = make(BLIND)
    use(board, PLAIN_SETTINGS)
    assert TrialRunner(board.context).due() == []
    assert (page(board).state, finding(board).known) == ("off", False)
    board.put(1, state="landing")
    landing(board)
    assert state(board, 1)[0] is State.DONE
