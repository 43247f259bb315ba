"""Recordings in which something was changed: refused, or looked at without harm."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from recorded_desk import desk

from adk_fluent.debug import Recorder, Recording, RecordingFileError
from adk_fluent.debug._html import html_page
from adk_fluent.debug._show import data_of, text_of
from adk_fluent.errors import AdkFluentError

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
    try:
        text_of(recording)
        data_of(recording)
        html_page(recording, like)
        list(recording.state_snapshots)
        recording.to_json()
    except AdkFluentError:
        pass
    return True


@pytest.mark.parametrize("step", [397, pytest.param(1, marks=pytest.mark.full)])
async def test_whatever_stands_at_a_place_does_no_harm(
    step: int, caplog: pytest.LogCaptureFixture
) -> None:
    whole = await recorded()
    like = Recording.from_json(json.dumps(whole))
    cases = [(place, value) for place in places(whole) for value in VALUES]
    taken = 0
    for place, value in cases[::step]:
        *above, last = place
        inside = whole
        for key in above:
            inside = inside[key]
        was, inside[last] = inside[last], value
        try:
            taken += look(whole, like)
        except Exception as error:
            raise AssertionError(f"{value!r:.40} at {place}") from error
        finally:
            inside[last] = was
        caplog.clear()
    assert 0 < taken < len(cases[::step])
