"""Hand-made answers in the form between the dialects, named by what is special in them."""

from __future__ import annotations

from legion.gateway.counting import Usage
from legion.gateway.dialects import seals
from legion.gateway.dialects.inner import Answer, Call, Said, Stop, Text, Thinking

_USED = Usage(input=100, output=20, cache_read=300, cache_write=40)


def _answer(*parts: Said, stop: Stop = Stop.END, sequence: str | None = None, usage: Usage = _USED) -> Answer:
    return Answer(id="msg_1", model="some-model", parts=parts, stop=stop, sequence=sequence, usage=usage)


def _call(id: str = "call_1", name: str = "Read", input: str = '{"path":"a"}') -> Call:
    return Call(id=id, name=name, input=input)


_SIGNED = Thinking(text="Hm.", seal="EqQBCgIYAhIM+/==")
_SEALED = Thinking(text="Hm.", seal=seals.of_responses("rs_1", "gAAAA"))

ANSWERS: dict[str, Answer] = {
    "words": _answer(Text(text="Hello.")),
    "letters": _answer(Text(text='Grüße 🙂 \u2028 "quoted" \\ \n\t')),
    "two texts": _answer(Text(text="one"), Text(text="two")),
    "nothing": _answer(),
    "long": _answer(Text(text="word " * 200)),
    "call": _answer(_call(), stop=Stop.CALLS),
    "call without input": _answer(_call(input="{}"), stop=Stop.CALLS),
    "call with a rich input": _answer(
        _call(input='{"a":[1,2.5,null,true,{"b":"ü\\n"}],"c":"\\u0001"}'), stop=Stop.CALLS
    ),
    "two calls": _answer(_call(), _call("call_2", "Bash", '{"command":"ls"}'), stop=Stop.CALLS),
    "words and a call": _answer(Text(text="so"), _call(), stop=Stop.CALLS),
    "thought and words": _answer(_SIGNED, Text(text="so")),
    "thought, words and a call": _answer(_SIGNED, Text(text="so"), _call(), stop=Stop.CALLS),
    "thought of another maker": _answer(_SEALED, Text(text="so")),
    "thought without proof": _answer(Thinking(text="Hm."), Text(text="so")),
    "cut at its length": _answer(Text(text="Hel"), stop=Stop.LENGTH),
    "cut at a word": _answer(Text(text="Hel"), stop=Stop.SEQUENCE, sequence="END"),
    "refused": _answer(Text(text="No."), stop=Stop.REFUSAL),
    "paused": _answer(Text(text="Wait."), stop=Stop.PAUSE),
    "no usage": _answer(Text(text="Hello."), usage=Usage()),
    "usage without caches": _answer(Text(text="Hello."), usage=Usage(input=7, output=3)),
}
