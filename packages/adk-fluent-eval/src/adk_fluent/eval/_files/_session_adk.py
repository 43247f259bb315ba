"""Cases from sessions: what was said once is said again. Importing this imports ADK."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.sessions.session import Session
from google.genai.types import Content
from pydantic import ValidationError

from adk_fluent._words import describe
from adk_fluent.eval._cases._case import FluentCase, SessionFields, check_fields
from adk_fluent.eval._errors import EvalError, EvalFileError
from adk_fluent.eval._files._evalset_block import call_of, folded
from adk_fluent.eval._files._json_text import parse_json
from adk_fluent.eval._files._native_adk import answer_text, text_or_content, validation_error
from adk_fluent.eval._files._place import Source, read_text

if TYPE_CHECKING:
    from google.adk.events.event import Event

_USER: Final = "user"

#: What ADK asks the user for in the shape of calls; no tools.
_ASKING: Final = "adk_request_"
_TEMP: Final = "temp:"  # gone with its invocation


def case_of(session: Session, fields: SessionFields) -> FluentCase:
    """A case that says what the user said in a session, and expects what came of it then.

    Each message of the user's is a turn, with its texts and media. The calls of tools after it are
    expected, with their arguments, and the last answer is the reference. State that came with the
    first message, or before it, and what no event has written since, is the initial state; of what
    was written over, a session keeps no trace.

    Args:
        session: The session.
        fields: Fields of the case that are to be otherwise.

    Raises:
        EvalError: The user says nothing in it, or a case has no such field.
    """
    if not isinstance(session, Session):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
        raise EvalError("a case is made of an ADK session", found=describe(session))
    check_fields(fields)
    turns: list[dict[str, Any]] = []
    deltas = [event.actions.state_delta or {} for event in session.events]
    written = {key for delta in deltas for key in delta}
    state = {key: value for key, value in session.state.items() if key not in written}
    for event, delta in zip(session.events, deltas, strict=True):
        said = _said(event)
        if not turns:
            state |= delta
        if said is not None:
            turns.append({"input": text_or_content(said), "expected_trajectory": []})
        elif turns:
            _note(turns[-1], event)
    if not turns:
        raise EvalError(
            f"the user says nothing in session {session.id!r}",
            found=f"{len(session.events)} events",
            help="load the session with its events",
        )
    made: dict[str, Any] = folded(turns)
    state = {key: value for key, value in state.items() if not key.startswith(_TEMP)}
    if state:
        made["initial_state"] = state
    made.update(cast("dict[str, Any]", fields))
    return FluentCase(**made)


def case_from_file(path: str | os.PathLike[str], fields: SessionFields) -> FluentCase:
    """The same from a session in a file, as `adk run --save_session` and `adk web` write it.

    Args:
        path: The file.
        fields: Fields of the case that are to be otherwise.

    Raises:
        EvalFileError: The file cannot be read, or is no session.
        EvalError: The user says nothing in it, or a case has no such field.
    """
    name = os.fspath(path)
    text = read_text(name)
    raw = parse_json(text, name)
    if not isinstance(raw, dict):
        raise EvalFileError("this is no session of ADK's", path=name, found=describe(raw))
    try:
        session = Session.model_validate_json(text)
    except ValidationError as error:
        raise validation_error(Source(name), (), error, raw) from error
    return case_of(session, fields)


def _said(event: Event) -> Content | None:
    """What the user says in an event: texts and media; None where it says nothing."""
    if event.author != _USER or event.content is None:
        return None
    parts = [
        part
        for part in event.content.parts or ()
        if part.text or part.inline_data is not None or part.file_data is not None
    ]
    return Content(role=_USER, parts=parts) if parts else None


def _note(turn: dict[str, Any], event: Event) -> None:
    """Adds an event to what is expected of a turn."""
    if event.partial or event.author == _USER:
        return
    for call in event.get_function_calls():
        if call.name and not call.name.startswith(_ASKING):
            turn["expected_trajectory"].append(call_of(call.name, call.args))
    if event.is_final_response() and (text := answer_text(event.content)):
        turn["reference_response"] = text
