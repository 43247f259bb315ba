"""What branches said, in the order in which they are declared and not in that of their ends.

Prompts are made of it: with the order of a run's events, the same replies would give another prompt
each time, which no cache of a provider, recording or test could rely on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from adk_fluent.protocol._answer import ALL_COUNT

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def in_declared_order(events: list[T], place: Callable[[T], tuple[str, str] | None]) -> list[T]:
    """Bring together what each branch of a fork said, the first declared branch first.

    Everything else stays where it is. What the user says in between parts a fork in two.

    Args:
        events: In the order in which they came.
        place: The run and the position of an event; None of one that has none.

    Returns:
        The very same list where nothing has to be moved.
    """
    forks: dict[tuple[int, str, str, str], int] = {}  # where the first event of each stands
    keys: list[tuple[int, ...]] = []
    part = 0
    for at, event in enumerate(events):
        where = place(event)
        key: list[int] = []
        if where is None:
            part += 1
        else:
            run, path = where
            end = 0
            for position in path.split(".") if path else ():
                if position[0] in ALL_COUNT:
                    key.append(forks.setdefault((part, run, path[:end], position[0]), at))
                    key.append(int(position[1:]))
                end += len(position) + 1
        keys.append((*key, at))
    if all(keys[at] < keys[at + 1] for at in range(len(keys) - 1)):
        return events
    return [events[at] for at in sorted(range(len(events)), key=keys.__getitem__)]
