"""The part of the stand-in about providers, questions and words to agents."""

from __future__ import annotations

from legion.domain.errors import NotFound, StateConflict
from legion.wire.projects import Done
from legion.wire.providers import (
    AddProvider,
    BeginLogin,
    FinishLogin,
    LoginBegun,
    LoginState,
    Models,
    ModelsOf,
    ProviderAnswer,
    ProviderLine,
    Providers,
    RemoveProvider,
    RemoveRoute,
    RouteLine,
    Routes,
    SetRoute,
    TryProvider,
)
from legion.wire.questions import Answered, AnswerQuestion, Inbox, MessageText, QuestionLine, Told
from legion.wire.tickets import Cassette, CassetteFile, SetRecording, TicketLine


class ModelsStandIn:
    """Remembers what it was told; the stand-in for the rest knows the tickets."""

    def reset_models(self) -> None:
        self.told: list[tuple[int, str]] = []
        self.questions: dict[int, QuestionLine] = {}
        self.answered: dict[int, AnswerQuestion] = {}
        self.callers: list[str] = []
        """Who asked, in order."""
        self.refused: list[tuple[str, str]] = []
        self.providers_there: dict[str, ProviderLine] = {}
        self.routes_there: dict[str, RouteLine] = {}
        self.added: list[AddProvider] = []
        self.recording = False

    def _ask(self, name: str) -> None:
        raise NotImplementedError

    def _line(self, id: int) -> TicketLine:
        raise NotImplementedError

    def inbox(self) -> Inbox:
        self._ask("inbox")
        return Inbox(questions=list(self.questions.values()))

    def answer(self, id: int, given: AnswerQuestion, /) -> Answered:
        self._ask("answer")
        if id not in self.questions:
            raise NotFound(f"There is no question {id}: see `legion inbox`.")
        ticket = self.questions.pop(id).ticket
        self.told.append((ticket or 0, given.why))
        allowed = given.choice in ("yes", "always") if given.allowed is None else given.allowed
        self.answered[id] = given
        return Answered(question=id, ticket=ticket, allowed=allowed, message="The agent goes ahead.")

    def tell(self, id: int, words: MessageText, /) -> Told:
        self._ask("tell")
        self._line(id)
        self.told.append((id, words.text))
        return Told(ticket=id, run=1, heard="deaf" not in words.text, message="It has heard it.")

    def interrupt(self, id: int, words: MessageText, /) -> Told:
        self._ask("interrupt")
        self._line(id)
        self.told.append((id, words.text))
        return Told(ticket=id, run=1, heard=True if words.text else None, message="It is interrupted.")

    def providers(self) -> Providers:
        self._ask("providers")
        return Providers(file="/providers.toml", providers=list(self.providers_there.values()))

    def add_provider(self, wanted: AddProvider, /) -> Done:
        self._ask("add_provider")
        self.added.append(wanted)
        return Done(message=f"Provider {wanted.name} is added.", notes=["Ticket 1 goes on."])

    def remove_provider(self, wanted: RemoveProvider, /) -> Done:
        self._ask("remove_provider")
        if wanted.name not in self.providers_there:
            raise NotFound(f"There is no provider {wanted.name}: see `legion provider list`.")
        if not wanted.yes:
            raise StateConflict("Agents work with it: add --yes.")
        del self.providers_there[wanted.name]
        return Done(message=f"Provider {wanted.name} is removed.")

    def begin_login(self, wanted: BeginLogin, /) -> LoginBegun:
        self._ask("begin_login")
        return LoginBegun(id="1", code="AB-12", url="https://example.test/device", seconds=900)

    def finish_login(self, wanted: FinishLogin, /) -> LoginState:
        self._ask("finish_login")
        return LoginState(done=True, message="Provider copilot is added.")

    def routes(self) -> Routes:
        self._ask("routes")
        return Routes(file="/routes.toml", routes=list(self.routes_there.values()))

    def set_route(self, wanted: SetRoute, /) -> Done:
        self._ask("set_route")
        self.routes_there[wanted.model] = RouteLine(model=wanted.model, provider=wanted.provider, to=wanted.to)
        return Done(message=f"{wanted.model} is asked for elsewhere.")

    def switch_recording(self, wanted: SetRecording, /) -> Done:
        self._ask("switch_recording")
        self.recording = wanted.on
        return Done(message="recorded", notes=[])

    def cassette(self, id: int, name: str, /) -> Cassette:
        self._ask("cassette")
        self._line(id)
        text = '[[step]]\nsay = "Done."\n'
        return Cassette(ticket=id, files=[CassetteFile(name=f"{name or f'ticket-{id}'}.toml", text=text)])

    def remove_route(self, wanted: RemoveRoute, /) -> Done:
        self._ask("remove_route")
        if self.routes_there.pop(wanted.model, None) is None:
            raise NotFound(f"There is no route for {wanted.model}: see `legion route list`.")
        return Done(message="Gone.")

    def models(self, name: str, /) -> Models:
        self._ask("models")
        return Models(providers=[ModelsOf(provider=one, models=["m"]) for one in self.providers_there])

    def try_provider(self, wanted: TryProvider, /) -> ProviderAnswer:
        self._ask("try_provider")
        ok = wanted.name in self.providers_there
        return ProviderAnswer(provider=wanted.name, ok=ok, model=wanted.model or "m", ms=12, message="It answers.")
