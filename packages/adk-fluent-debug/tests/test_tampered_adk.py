"""Recordings in which something was changed: refused, or looked at without harm."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest
from recorded_desk import desk

from adk_fluent.debug import Recorder, Recording, RecordingFileError
from adk_fluent.debug._html import html_page
from adk_fluent.debug._show import text_of
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.adk

Place = tuple[str | int, ...]
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**400, 1.5, float("nan"), "", "x", "half \ud83d"),
    *([], [None], {}, {"x": None}, [{"parts": [3]}]),
)


async def recorded() -> Any:
    with Recorder() as kept:
        await desk().run("Refund A1", state={"vip": True})
    return json.loads(kept.recording.to_json())


def places(data: Any, here: Place = ()) -> Iterator[Place]:
    rows: list[tuple[Any, Any]] = []
    if isinstance(data, dict):
        rows = [*cast("dict[Any, Any]", data).items()]
    elif isinstance(data, list):
        rows = [*enumerate(cast("list[Any]", data))]
    for key, value in rows:
        yield (*here, key)
        yield from places(value, (*here, key))


def look(data: Any, like: Recording) -> bool:
    """Whether it is a recording; all that looks at it does so without an error of Python."""
    try:
        recording = Recording.from_json(json.dumps(data))
    except RecordingFileError:
        return False
    text_of(recording)
    html_page(recording, like)
    recording.to_json()
    with suppress(UsageError):  # it says that there is no state
        list(recording.state_snapshots)
    return True


def kinds(data: Any) -> list[Place]:
    """One place of each kind, which is told by the keys above it."""
    found: dict[tuple[str, ...], Place] = {}
    for place in places(data):
        found.setdefault(tuple(key if isinstance(key, str) else "" for key in place), place)
    return list(found.values())


def spoilt(whole: Any, place: Place, value: Any, like: Recording) -> bool:
    """Whether a recording in which a place holds another value is one; it is whole again then."""
    *above, last = place
    inside = whole
    for key in above:
        inside = inside[key]
    was, inside[last] = inside[last], value
    try:
        return look(whole, like)
    except Exception as error:
        raise AssertionError(f"{value!r:.40} at {place}") from error
    finally:
        inside[last] = was


async def test_whatever_stands_at_a_kind_of_place_does_no_harm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = await recorded()
    like = Recording.from_json(json.dumps(whole))
    found = kinds(whole)
    cases = [(place, VALUES[at % len(VALUES)]) for at, place in enumerate(found)]
    taken = sum(spoilt(whole, place, value, like) for place, value in cases)
    caplog.clear()
    assert 0 < taken < len(cases)


@pytest.mark.full
async def test_whatever_stands_at_a_place_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    whole = await recorded()
    like = Recording.from_json(json.dumps(whole))
    cases = [(place, value) for place in places(whole) for value in VALUES]
    taken = 0
    for place, value in cases:
        taken += spoilt(whole, place, value, like)
        caplog.clear()
    assert 0 < taken < len(cases)
