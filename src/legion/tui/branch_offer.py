"""Offers to follow the person's checkout to another branch. Once for each pair of branches, and never twice. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from legion.client.legion import Legion
from legion.wire.sessions import BindSession, NamedSession, NewSession, SessionList

SWITCH, NEW, BIND, LEAVE = "switch", "new", "bind", "leave"


@dataclass(frozen=True, kw_only=True)
class BranchOffer:
    """The checkout has another branch than the session that gets the person's tickets."""

    session: str
    branch: str
    checkout: str
    other: str
    """The session of the checkout's branch; empty where there is none."""

    @property
    def key(self) -> str:
        """Names the pair, so that it is offered once."""
        return f"{self.session} {self.branch} {self.checkout}"

    @property
    def question(self) -> str:
        return f"Your checkout is on {self.checkout}. Your tickets go to session {self.session}, on {self.branch}."

    @property
    def choices(self) -> list[tuple[str, str]]:
        """As (value, text). It opens by itself, so the first, which a stray Enter chooses, changes nothing."""
        follow = (
            (SWITCH, f"Switch to session {self.other}, which lands on {self.checkout}.")
            if self.other
            else (NEW, f"Start a session for {self.checkout}; both continue.")
        )
        bind = (BIND, f"Bind session {self.session} to {self.checkout}: its work lands there from now on.")
        leave = (LEAVE, f"Continue with {self.branch}.")
        return [leave, follow] if self.other else [leave, follow, bind]

    def request(self, choice: str, cwd: str) -> Callable[[Legion], str] | None:
        """None where nothing changes."""
        match choice:
            case "switch":
                switch = NamedSession(cwd=cwd, name=self.other)
                return lambda legion: legion.switch_session(switch).message
            case "bind":
                bind = BindSession(cwd=cwd, name=self.session, branch=self.checkout)
                return lambda legion: legion.bind_session(bind).message
            case "new":
                new = NewSession(cwd=cwd, branch=self.checkout)
                return lambda legion: _started(legion, new)
            case _:
                return None


def _started(legion: Legion, wanted: NewSession) -> str:
    legion.new_session(wanted)
    return f"Your tickets go to a session on {wanted.branch} now."


def offer_of(found: SessionList) -> BranchOffer | None:
    """None where the acting session has the branch of the checkout, or HEAD is detached."""
    acting = next((one for one in found.sessions if one.acting), None)
    if acting is None or not found.checkout or acting.branch == found.checkout:
        return None
    other = next((one.name for one in found.sessions if one.branch == found.checkout and one.ended_at is None), "")
    return BranchOffer(session=acting.name, branch=acting.branch, checkout=found.checkout, other=other)
