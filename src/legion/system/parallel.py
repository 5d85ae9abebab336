"""Calls a function for several items at once, in threads that do not keep the process alive.

Python waits at its exit for the threads of `concurrent.futures`, so a daemon that is stopped while one of them waits
for a test would stay until the test ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def call_each(function: Callable[[Item], Result], items: Sequence[Item], *, thread_name: str) -> list[Result]:
    """The results in the order of the items. Raises the first error, after all calls have ended."""
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}

    def call(place: int) -> None:
        try:
            results[place] = function(items[place])
        except BaseException as error:  # all errors: each is raised again in the caller's thread
            errors[place] = error

    threads = [
        threading.Thread(target=call, args=(place,), name=f"{thread_name}_{place}", daemon=True)
        for place in range(len(items))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(len(items))]
