"""What a run gave, or a call of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, overload

from adk_fluent.errors import OutputMissingError
from adk_fluent.protocol._answer import final_text
from adk_fluent.protocol._attempts import kept_events
from adk_fluent.protocol._event import AgentEvent
from adk_fluent.protocol._output import output_as, typed_output
from adk_fluent.protocol._status import outcome
from adk_fluent.protocol._usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adk_fluent.protocol._discarded import DiscardedAttempt
    from adk_fluent.protocol._event import ErrorInfo
    from adk_fluent.protocol._pending import Pending
    from adk_fluent.protocol._status import Outcome, RunStatus

if TYPE_CHECKING:  # with what Python 3.13 and 3.15 have
    from typing_extensions import TypeForm, TypeVar

    T_co = TypeVar("T_co", default=Any, covariant=True)
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)
Value = TypeVar("Value")

_USER: Final = "user"


class RunResult(list[AgentEvent], Generic[T_co]):
    """The events of a run, in order, and what they amount to.

    What a `Backend` gives for a call that goes on with a run has the events from there on, and so
    have `text`, `output` and `usage`; engines give the run from its beginning.

    Attributes:
        state: Session state when the run ended, temporary keys left out.
        session_id: The session it ran in.
        user_id: Whose session that is.
        app_name: The app it belongs to.
        discarded: Attempts of fallbacks that failed and that another one took the place of, in
            order; of this call alone, not of earlier ones of the session.
        notes: What middlewares noted that stands on no event: as `AgentEvent.custom_metadata`, of
            what came after the last answer.
        types: The types of the steps whose answer is the pipeline's, by name; None where no
            pipeline says so.
    """

    def __init__(
        self,
        events: Iterable[AgentEvent] = (),
        *,
        state: Mapping[str, Any] | None = None,
        session_id: str = "",
        user_id: str = "",
        app_name: str = "",
        discarded: Iterable[DiscardedAttempt] = (),
        notes: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Make a result.

        Args:
            events: What happened, in order.
            state: Session state at the end; None takes what the events wrote.
            session_id: The session it ran in.
            user_id: Whose session that is.
            app_name: The app it belongs to.
            discarded: Attempts of fallbacks that failed.
            notes: What middlewares noted that stands on no event.
        """
        super().__init__(events)
        self.state: dict[str, Any] = dict(_written(self) if state is None else state)
        self.session_id = session_id
        self.user_id = user_id
        self.app_name = app_name
        self.discarded: list[DiscardedAttempt] = list(discarded)
        self.notes: list[Mapping[str, Any]] = list(notes)
        self.types: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The answer, in words of agents alone; see `final_text`."""
        return final_text(self)

    @property
    def output(self) -> T_co | None:
        """The answer as a value of its type: ``agent @ Invoice`` gives an ``Invoice``.

        Of agents that run at the same time, and of `map_over`, it is a list in declared order. It
        is None where the last step that can answer answered in text or not at all, and where the
        run was not completed. Several keys, or typed ones, are a dict of JSON.
        """
        return typed_output(self, self.types) if self.status == "completed" else None

    @overload
    def output_as(self, schema: type[Value]) -> Value: ...

    @overload
    def output_as(self, schema: TypeForm[Value]) -> Value: ...

    def output_as(self, schema: Any) -> Any:
        """The answer as a type that you name, where type checkers cannot know it.

        Args:
            schema: A pydantic model, or another type that pydantic can read, such as
                ``list[Invoice]``. JSON in an answer of text is read, too.

        Raises:
            OutputMissingError: The run was not completed, or nobody answered.
            OutputInvalidError: The answer does not fit.
            UsageError: Pydantic knows no such type.
        """
        if self.status != "completed" or not self.text:
            told = f"the run is {self.status}" if self.reason else "nobody answered"
            raise OutputMissingError(
                f"there is no answer: {told}", node=self.step or None, found=self.reason or None
            )
        return output_as(self, schema)

    @property
    def status(self) -> RunStatus:
        """What became of the run, of these the first that is true.

        - ``waiting``: it asks for something, see `pending`;
        - ``rejected``: a person refused at a gate, and nothing after it was run;
        - ``truncated``: an answer broke off in the middle (``MAX_TOKENS``), see `errors`;
        - ``failed``: an agent reported another error, see `errors`;
        - ``escalated``: an agent escalated, and stood in no loop that this could have ended;
        - ``completed``.

        Of several of a kind the last counts. What a step raises is raised and gives no result.
        """
        return self._outcome.status

    @property
    def reason(self) -> str:
        """Why `status` is what it is, for people; "" when it is ``completed``.

        Where two answer one question at once, it tells the second that nothing was run for that.
        """
        return self._outcome.reason

    @property
    def step(self) -> str:
        """Name of the step that `status` is about; "" when it is ``completed``."""
        return self._outcome.step

    @property
    def _outcome(self) -> Outcome:
        return outcome(self, self.pending)

    @property
    def usage(self) -> Usage:
        """Tokens of all model calls, those of discarded attempts included: they are billed."""
        return sum((e.usage for e in self if e.usage and not e.is_partial), Usage())

    @property
    def errors(self) -> list[ErrorInfo]:
        """Errors that agents reported and nothing made good (a fallback does).

        Streamed, most versions of ADK report one twice: with the last piece and with the whole.
        """
        found = [(e.path, e.author, e.error, e.is_partial) for e in kept_events(self)]
        whole = {(*each, False) for *each, partial in found if not partial}
        return [
            error
            for path, author, error, partial in found
            if error is not None and not (partial and (path, author, error, False) in whole)
        ]

    @property
    def pending(self) -> list[Pending]:
        """Questions the run waits on; empty when it came to its end."""
        # what a tool says of its result while it is to come, or of a question, answers nothing
        answered = {r.call_id for e in self if e.author == _USER for r in e.tool_responses}
        answered.update(id for event in self for id in event.metadata.get("settled", ()))
        asked = {p.id: p for event in kept_events(self) for p in event.pending}
        return [p for p in asked.values() if p.id not in answered]

    @property
    def invocation_id(self) -> str:
        """The call that gave these events, "" when there are none."""
        return self[-1].invocation_id if self else ""

    def __repr__(self) -> str:
        return f"RunResult({len(self)} events, text={self.text!r}, session_id={self.session_id!r})"


def _written(events: Iterable[AgentEvent]) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for event in events:
        if not event.is_partial:
            state.update(event.state_delta)
    return {
        key: value
        for key, value in state.items()
        if value is not None and not key.startswith("temp:")
    }
