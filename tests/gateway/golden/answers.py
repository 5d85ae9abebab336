"""Hand-made answers in the form between the dialects, named by what is special in them."""

from __future__ import annotations

from legion.gateway.counting.counters import TokenCounts
from legion.gateway.dialects import signatures
from legion.gateway.dialects.messages import AnswerPart, ModelAnswer, StopReason, TextPart, ThinkingPart, ToolCallPart

_USED = TokenCounts(input=100, output=20, cache_read=300, cache_write=40)


def _answer(
    *parts: AnswerPart, stop: StopReason = StopReason.END, sequence: str | None = None, usage: TokenCounts = _USED
) -> ModelAnswer:
    return ModelAnswer(id="msg_1", model="some-model", parts=parts, stop=stop, sequence=sequence, usage=usage)


def _call(id: str = "call_1", name: str = "Read", input: str = '{"path":"a"}') -> ToolCallPart:
    return ToolCallPart(id=id, name=name, input=input)


_SIGNED = ThinkingPart(text="Hm.", signature="EqQBCgIYAhIM+/==")
_SEALED = ThinkingPart(text="Hm.", signature=signatures.of_responses("rs_1", "gAAAA"))

ANSWERS: dict[str, ModelAnswer] = {
    "words": _answer(TextPart(text="Hello.")),
    "letters": _answer(TextPart(text='Grüße 🙂 \u2028 "quoted" \\ \n\t')),
    "two texts": _answer(TextPart(text="one"), TextPart(text="two")),
    "nothing": _answer(),
    "long": _answer(TextPart(text="word " * 200)),
    "call": _answer(_call(), stop=StopReason.CALLS),
    "call without input": _answer(_call(input="{}"), stop=StopReason.CALLS),
    "call with a rich input": _answer(
        _call(input='{"a":[1,2.5,null,true,{"b":"ü\\n"}],"c":"\\u0001"}'), stop=StopReason.CALLS
    ),
    "two calls": _answer(_call(), _call("call_2", "Bash", '{"command":"ls"}'), stop=StopReason.CALLS),
    "words and a call": _answer(TextPart(text="so"), _call(), stop=StopReason.CALLS),
    "thought and words": _answer(_SIGNED, TextPart(text="so")),
    "thought, words and a call": _answer(_SIGNED, TextPart(text="so"), _call(), stop=StopReason.CALLS),
    "thought of another maker": _answer(_SEALED, TextPart(text="so")),
    "thought without proof": _answer(ThinkingPart(text="Hm."), TextPart(text="so")),
    "cut at its length": _answer(TextPart(text="Hel"), stop=StopReason.LENGTH),
    "cut at a word": _answer(TextPart(text="Hel"), stop=StopReason.SEQUENCE, sequence="END"),
    "refused": _answer(TextPart(text="No."), stop=StopReason.REFUSAL),
    "paused": _answer(TextPart(text="Wait."), stop=StopReason.PAUSE),
    "no usage": _answer(TextPart(text="Hello."), usage=TokenCounts()),
    "usage without caches": _answer(TextPart(text="Hello."), usage=TokenCounts(input=7, output=3)),
}
