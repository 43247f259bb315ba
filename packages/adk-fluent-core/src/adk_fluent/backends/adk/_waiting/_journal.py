"""Where a run stands, kept in the state of its session.

Texts, for ADK's older SQLite services merge dicts into those they hold: one, and where a run has
many branches those parts that a step changes. Being state, they are committed together with what
the same event says, and a rewind takes them back as everything else.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.backends._unkept import unkept
from adk_fluent.backends.adk._session._stamps import journal_key, part_key, parts_in
from adk_fluent.backends.adk._waiting._claim import dumped, lost
from adk_fluent.errors import SessionError
from adk_fluent.flow import join, questions_at, split
from adk_fluent.protocol import JournalEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.backends._resuming import Pipeline
    from adk_fluent.backends.adk._running._places import Outer
    from adk_fluent.flow import Position
    from adk_fluent.ir import Node
    from adk_fluent.protocol import JournalStatus

_FORMAT: Final = 1
_OVER: Final = "over"


def load(state: Mapping[str, Any], name: str) -> JournalEntry | None:
    """Where the last run of a root stands; None when there is none, or it is over.

    Raises:
        SessionError: A newer version wrote it, or it is none.
    """
    text = state.get(journal_key(name))
    if text is None:
        return None
    try:
        data: dict[str, Any] = json.loads(text)
        if data.pop("format") != _FORMAT:
            raise SessionError(
                "a newer version of adk-fluent-core wrote where the run in this session stands",
                help="go on with that version",
            )
        if data["status"] == _OVER:
            return None
        parts = parts_in(state, name)
        pieces = {number: json.loads(parts[number]) for number in data.pop("parts", ())}
        data["position"] = join(data["position"], pieces)
        asked = questions_at(data["position"]).items()
        waits = {id: kind for id, kind in asked if id not in data["answered"]}
        data["segments"] = tuple(data.get("segments", ()))
        return JournalEntry(**data, waits=waits)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise SessionError(
            f"state[{journal_key(name)!r}] does not say where a run stands",
            found=f"{text!r:.60}",
            help="only adk-fluent writes to that key; take the run back with .rewind(...)",
        ) from error


def is_done(state: Mapping[str, Any], name: str, outer: Outer) -> bool:
    """Whether a flow came to its end in a step, and only the step's own end is not written down.

    Args:
        state: Where that is kept.
        name: The name of the flow's journal.
        outer: The step.
    """
    text = state.get(journal_key(name))
    if name in outer.over or not isinstance(text, str):
        return False
    data: dict[str, Any] = json.loads(text)
    return data.get("status") == _OVER and data.get("run") == outer.run


class Progress:
    """Where one run stands, and the state that says so.

    Args:
        pipeline: What is run.
        name: The root's name.
        entry: Where it stands now.
        state: Where it was kept until now.
    """

    def __init__(
        self, pipeline: Pipeline, name: str, entry: JournalEntry, state: Mapping[str, Any]
    ) -> None:
        self.entry: JournalEntry = entry
        self._pipeline = pipeline
        self._node: Node = pipeline.node
        self._key = journal_key(name)
        self.name: str = name
        self._text: str | None = None
        self._parts = parts_in(state, name)

    def at(
        self,
        position: Position,
        status: JournalStatus = "running",
        segments: tuple[str, ...] = (),
    ) -> dict[str, str | None]:
        """The state that says where the run stands.

        Args:
            position: Where it stands.
            status: How.
            segments: The segments whose steps come next.

        Raises:
            UnstorableValueError: It holds what is no JSON.
        """
        answered = self.entry.answered
        if status == "waiting":  # those of steps that wait for more
            waits = questions_at(position)
            answered = {id: value for id, value in answered.items() if id in waits}
        entry = self.entry = replace(
            self.entry,
            plan=self._pipeline.hash,
            position=position,
            answered=answered,
            status=status,
            owner=self.entry.owner if status == "running" else "",
            saved=round(time.time(), 3),
            revision=self.entry.revision + 1,
            segments=segments,
        )
        try:
            rest, parts = split(position)
            texts = {number: dumped(part) for number, part in parts.items()}
            self._text = dumped({**_plain(entry), "position": rest, "parts": sorted(texts)})
        except (TypeError, ValueError) as error:
            raise unkept(position, self._node, str(error)) from error
        changed = {number: None for number in self._parts if number not in texts} | {
            number: text for number, text in texts.items() if self._parts.get(number) != text
        }
        self._parts = texts
        delta = {part_key(self.name, number): text for number, text in changed.items()}
        return {self._key: self._text, **delta}

    def over(self, *, told: bool) -> dict[str, str | None]:
        """The state that says that the run is over.

        Args:
            told: Whether it says so; else nothing is kept.
        """
        text = None
        if told:
            text = dumped({**_plain(self.entry), "status": _OVER, "owner": "", "answered": {}})
        return {self._key: text} | {part_key(self.name, number): None for number in self._parts}

    def check_owner(self, state: Mapping[str, Any]) -> None:
        """See that nobody else has taken over the run.

        Raises:
            SessionError: Somebody has.
        """
        text = state.get(self._key)
        if text is None or text == self._text:
            return
        if json.loads(text)["revision"] > self.entry.revision:
            raise lost(self._node, json.loads(text)["owner"])


def _plain(entry: JournalEntry) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "plan": entry.plan,
        "status": entry.status,
        "run": entry.run,
        "invocation_id": entry.invocation_id,
        "user_message": entry.user_message,
        "answered": entry.answered,
        "owner": entry.owner,
        "saved": entry.saved,
        "revision": entry.revision,
        **({"segments": entry.segments} if entry.segments else {}),
    }
