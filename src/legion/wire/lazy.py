"""`dataclass` for the shapes of this folder: the standard one, compiled when a shape is first used.

The standard decorator compiles several methods per class. A command imports about sixty shapes with the module that it
needs and uses eight of them; compiling all took a third of its time. To type checkers this is the standard decorator.
"""

from __future__ import annotations

import dataclasses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
    from typing import Any
else:

    def dataclass(**options: Any) -> Callable[[type[Any]], type[Any]]:
        def deferred(shape: type[Any]) -> type[Any]:
            given = {name: value for name, value in vars(shape).items() if name not in ("__dict__", "__weakref__")}

            def init(self: object, *values: object, **named: object) -> None:
                _compile(shape, given, options)
                shape.__init__(self, *values, **named)

            shape.__init__ = init
            shape.__dataclass_fields__ = _Fields(given, options)
            return shape

        return deferred


class _Fields:
    """Stands for the fields until `dataclasses.fields`, `is_dataclass` or pydantic read them."""

    def __init__(self, given: dict[str, Any], options: dict[str, Any]) -> None:
        self._given = given
        self._options = options

    def __get__(self, _: object, shape: type[Any]) -> object:
        _compile(shape, self._given, self._options)
        return shape.__dataclass_fields__


def _compile(shape: type[Any], given: dict[str, Any], options: dict[str, Any]) -> None:
    """In a class of its own, which then lends its methods: a thread never sees a shape that is half done."""
    compiled: type[Any] = dataclasses.dataclass(**options)(type(shape.__name__, shape.__bases__, given))
    for field in dataclasses.fields(compiled):
        if isinstance(vars(shape).get(field.name), dataclasses.Field):
            # The standard decorator removes it as well: there is no default on the class.
            delattr(shape, field.name)
    for name in (
        "__repr__",
        "__eq__",
        "__hash__",
        "__match_args__",
        "__dataclass_params__",
        "__dataclass_fields__",
        "__init__",
    ):
        setattr(shape, name, vars(compiled)[name])
