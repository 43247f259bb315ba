"""Going on with a run: what is handed to ADK's Runner in the place of a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from google.genai import types

from adk_fluent.backends._resuming import Tell, judge
from adk_fluent.backends.adk._waiting._elsewhere import elsewhere
from adk_fluent.backends.adk._waiting._inbox import asking, below, questions, results
from adk_fluent.backends.adk._waiting._journal import load

if TYPE_CHECKING:
    from google.adk.sessions.session import Session

    from adk_fluent.backends.adk._running._root import FlowAgent
    from adk_fluent.protocol import Pending, Resume


class Start(NamedTuple):
    """What a run is started with.

    Attributes:
        message: What the user says, or answers.
        invocation_id: The call that is gone on with, where nobody says anything.
    """

    message: types.Content | None
    invocation_id: str | None = None


def going_on(root: FlowAgent, resume: Resume, session: Session) -> Start:
    """What goes on with the run in a session.

    Raises:
        PlanChangedError: The pipeline is not the one whose run is to go on.
        SessionError: There is no such run or question, or somebody else does the run.
        UsageError: What was answered is no answer.
    """
    entry = load(session.state, root.name)
    answers = {each.id: _response(each.value) for each in resume.answers}
    verdict = judge(
        root.plan.pipeline,
        entry,
        answers,
        goes_on=not answers,
        whole=True,
        was_asked=lambda id: asking(session.events, id) is not None,
        elsewhere=lambda: elsewhere(session.state, root),
        below=below(root),
    )
    if isinstance(verdict, Tell):
        raise verdict.error
    if not answers:
        return Start(None, None if entry is None else entry.invocation_id)
    return Start(types.Content(role="user", parts=results(session, answers)))


def open_questions(root: FlowAgent, session: Session) -> list[Pending]:
    """What the run of a session waits on."""
    entry = load(session.state, root.name)
    waits = () if entry is None or entry.status != "waiting" else entry.waits
    return questions(session.events, waits)


def _response(value: Any) -> dict[str, Any]:
    """An answer as the result of the call that asks it."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    # not "approved", which refuses where the schema of an answer is a bool
    return {"result": value}
