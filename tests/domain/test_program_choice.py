"""ProgramChoice: what was tried decides, by kind of ticket, and is explained."""

from __future__ import annotations

from legion.domain.scheduling.program_choice import PastTicket, best_program

USABLE = {"claude", "codex", "pi"}


def past(
    driver: str, landed: int, of: int, *, usd: float = 0.0, attempts: int = 1, **facts: object
) -> list[PastTicket]:
    common = {"model": "", "labels": (), "files": (), **facts}
    return [
        PastTicket(driver=driver, landed=n < landed, attempts=attempts, usd=usd, **common)  # type: ignore[arg-type]
        for n in range(of)
    ]


def test_the_program_that_lands_most_is_chosen_and_the_choice_explained():
    found = best_program((), (), past("claude", 5, 5, usd=0.5) + past("codex", 1, 5, usd=0.1), USABLE)
    assert found is not None
    assert (found.driver, found.model) == ("claude", "")
    assert found.why == (
        "of all tickets, claude landed 5 of 5 in 1.0 attempts at $0.50 each; "
        "codex landed 1 of 5 in 5.0 attempts at $0.50 each"
    )


def test_of_equals_the_cheaper_then_the_faster_one_is_chosen():
    known = past("claude", 5, 5, usd=0.5) + past("codex", 5, 5, usd=0.2)
    assert best_program((), (), known, USABLE).driver == "codex"  # type: ignore[union-attr]
    known = past("claude", 5, 5) + past("codex", 5, 5, attempts=2)
    assert best_program((), (), known, USABLE).driver == "claude"  # type: ignore[union-attr]
    models = past("claude", 4, 4, model="opus", usd=2.0) + past("claude", 4, 4, model="haiku", usd=0.1)
    assert best_program((), (), models, USABLE).model == "haiku"  # type: ignore[union-attr]


def test_the_most_exact_kind_with_a_choice_counts():
    known = past("claude", 9, 9) + past("codex", 0, 3)
    known += past("codex", 3, 3, labels=("docs",)) + past("claude", 0, 3, labels=("docs",))
    known += past("pi", 3, 3, files=("web/a.js",)) + past("claude", 1, 3, files=("web/b.js",))
    chosen = {
        (labels, files): best_program(labels, files, known, USABLE).driver  # type: ignore[union-attr]
        for labels, files in (((), ()), (("docs",), ()), ((), ("web/c.js",)), (("other",), ("src/x",)))
    }
    assert chosen == {
        ((), ()): "pi",
        (("docs",), ()): "codex",
        ((), ("web/c.js",)): "pi",
        (("other",), ("src/x",)): "pi",
    }


def test_without_enough_of_two_or_without_its_program_nothing_is_chosen():
    enough = past("claude", 5, 5)
    assert best_program((), (), [], USABLE) is None
    assert best_program((), (), enough, USABLE) is None
    assert best_program((), (), enough + past("codex", 2, 2), USABLE) is None
    assert best_program((), (), enough + past("codex", 5, 5), {"claude"}) is None
