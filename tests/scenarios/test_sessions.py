"""Two sessions of one repository at once, with the real daemon: each lands on its own branch, and one is completed."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.gates import Gate
from tests.support.legion import Project
from tests.support.repository import CHECK


def test_two_sessions_work_at_once_land_apart_and_one_is_completed(make: Callable[..., Project]):
    project = make()
    here = project.repository
    here.git("checkout", "--quiet", "-b", "feature/login")
    here.git("commit", "--quiet", "--allow-empty", "-m", "Begin the login")
    here.git("checkout", "--quiet", "main")
    legion = project.squad.cli
    assert legion("session", "new", "feature/login", cwd=here.root).returncode == 0
    words = ("--command", "echo branch > b.txt", "-t", "On the branch")
    assert legion("dispatch", *words, cwd=here.root).returncode == 0
    words = ("--command", "echo main > m.txt", "-t", "On main")
    assert legion("dispatch", "--session", "default", *words, cwd=here.root).returncode == 0

    # The person rewrites the branch meanwhile: landed work that they had not collected lands on it again.
    assert legion("wait", cwd=here.root).returncode == 0
    here.git("checkout", "--quiet", "feature/login")
    here.git("commit", "--quiet", "--amend", "--allow-empty", "-m", "Start the login")
    here.git("checkout", "--quiet", "main")
    assert legion("dispatch", "--command", "echo late > l.txt", "-t", "Later", cwd=here.root).returncode == 0
    # Other tests share the inbox.
    (asked,) = [
        one
        for one in project.squad.client.inbox().questions
        if "rebase" in one.choices and "feature/login" in one.words
    ]
    assert asked.choices == ["rebase", "rebuild", "leave"]

    def rebased() -> bool:
        """Not in the moment in which the later ticket lands."""
        answered = legion("answer", str(asked.id), "rebase", cwd=here.root)
        assert answered.returncode == 0 or "is just landing" in answered.stderr, answered.stderr
        return "lands on it again" in answered.stdout

    project.until_true(rebased)

    done = legion("session", "complete", "feature-login", "--wait", "--into", "default", cwd=here.root)
    assert done.returncode == 0, done.stderr
    assert "Session feature-login is complete. feature/login has" in done.stdout
    subjects = here.git("log", "--format=%s", "feature/login").splitlines()
    assert subjects.count("Start the login") == subjects.count("On the branch") == 1
    assert "Begin the login" not in subjects
    assert here.git("show", "feature/login:l.txt") == "late"
    assert here.git("show", "feature/login:b.txt") == "branch"
    assert "m.txt" not in here.git("ls-tree", "--name-only", "feature/login")
    assert legion("collect", "--wait", cwd=here.root).returncode == 0
    assert (here.root / "m.txt").read_text() == "main\n"
    assert (here.root / "b.txt").read_text() == "branch\n"
    assert "Land feature/login" in here.git("log", "--format=%s")
    listed = legion("session", "list", "--all", cwd=here.root).stdout
    assert "feature-login" in listed
    assert "ended" in listed


def test_an_epic_on_its_own_branch_reads_the_project_that_it_depends_on_and_lands_as_a_whole(
    make: Callable[..., Project], gate: Gate
):
    lib = make()
    app = make(f'{CHECK}\n[project]\ndepends_on = ["{lib.repository.root.name}"]\n')
    legion, root = app.squad.cli, app.repository.root
    lib.dispatch("In the library", f"{gate.pause}; echo from the library > lib.txt")
    assert legion("epic", "v2", "--own-branch", cwd=root).returncode == 0
    reads = f'git clone -q "$LEGION_PROJECTS/{lib.repository.root.name}" "$LEGION_TMP/lib"'
    command = f'{reads} && cp "$LEGION_TMP/lib/lib.txt" app.txt'
    made = legion("dispatch", "--epic", "v2", "--command", command, "-t", "In the app", cwd=root)
    assert "It goes to session epic-v2" in made.stdout + made.stderr
    assert "Starts after the open tickets of" in made.stdout + made.stderr
    gate.open()
    assert legion("epic", "v2", "--watch", cwd=root).returncode == 0
    assert app.landed("app.txt") is None
    done = legion("epic", "v2", "--land", cwd=root)
    assert done.returncode == 0, done.stderr
    assert legion("epic", "v2", "--watch", cwd=root).returncode == 0
    assert app.landed("app.txt") == "from the library\n"
    assert app.repository.git("show", "epic/v2:app.txt") == "from the library"
