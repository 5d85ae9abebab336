"""Routes between a person and agents at work: the inbox, answers, words."""

from __future__ import annotations

from functools import partial

from fastapi import Request

from legion.api.asking import Asked, QuestionId, TicketId, storable
from legion.api.late import LateRouter
from legion.api.waiting import Waiters
from legion.wire.questions import Answered, AnswerQuestion, Inbox, MessageText, Told

router = LateRouter(prefix="/v1", tag="questions")


@router.get("/inbox", summary="Questions that wait for the person")
def inbox(service: Asked) -> Inbox:
    return service.inbox()


@router.post("/questions/{id}/answer", summary="Answer a question")
def answer(id: QuestionId, given: AnswerQuestion, service: Asked) -> Answered:
    return service.answer(id, storable(given))


@router.post("/tickets/{id}/tell", summary="Words for its agent at work, at most 30 s until they are heard")
async def tell(request: Request, id: TicketId, words: MessageText, service: Asked) -> Told:
    waiters: Waiters = request.app.state.waiters
    return await waiters.run(partial(service.tell, id, storable(words)))


@router.post("/tickets/{id}/interrupt", summary="Interrupt its agent; with words it goes on, else it is paused")
async def interrupt(request: Request, id: TicketId, service: Asked, words: MessageText | None = None) -> Told:
    waiters: Waiters = request.app.state.waiters
    return await waiters.run(partial(service.interrupt, id, storable(words or MessageText())))
