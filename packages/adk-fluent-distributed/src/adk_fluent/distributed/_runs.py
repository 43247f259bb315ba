"""What every engine says of runs: unknown ones, failed ones, and answers that fit nothing."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.distributed._errors import DistributedRunError
from adk_fluent.errors import UsageError
from adk_fluent.extend import answer_fault, describe, storage_fault
from adk_fluent.protocol import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbos import WorkflowStatus

    from adk_fluent.distributed._call import RunStatus, SegmentCall
    from adk_fluent.distributed._segments import SegmentPlan


_AGAIN: Final = "correct the cause; answer(run_id) resumes the run where it stands"
_RUN_ID: Final = re.compile(r"[\w.:@+-]{1,200}")


def unknown_run(run_id: str) -> DistributedRunError:
    """The error about an id that no run has."""
    return DistributedRunError(
        f"there is no run {run_id!r}",
        run_id=run_id,
        help="submit it first, or name the database it was submitted to",
    )


def first_line(error: BaseException) -> str:
    """The first line of what an error says; those of databases add the statement and a link."""
    return str(error).partition("\n")[0]


def failed_run(stands: RunStatus) -> DistributedRunError:
    """The error about a run that ended with one, or was cancelled."""
    error = stands.error
    if error is None:
        return DistributedRunError(
            f"run {stands.run_id!r} was cancelled",
            run_id=stands.run_id,
            help="begin another run, with an id of its own",
        )
    return DistributedRunError(
        f"run {stands.run_id!r} failed in segment {stands.segment!r}",
        run_id=stands.run_id,
        node=error["node"],
        location=error["location"],
        found=said(error),
        help=error.get("help") or f"correct the cause; answer({stands.run_id!r}) resumes the run",
    )


def said(error: Mapping[str, str]) -> str:
    """An error as people read it: its type, its code where it has one, and what it says."""
    code = f" [{error['code']}]" if error.get("code") else ""
    return f"{error['type']}{code}: {error['message']}"


def new_id() -> str:
    """An id that no run has."""
    return uuid.uuid4().hex


def checked_id(run_id: Any) -> str:
    """The id, if it may be one.

    Raises:
        UsageError: It may not.
    """
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id):
        raise UsageError(
            "run_id= is a text of 1 to 200 letters, digits and . : @ + - _",
            found=repr(run_id[:80]) if isinstance(run_id, str) else describe(run_id),
        )
    return run_id


def checked_user(user_id: Any) -> str:
    """The id of a user, if it may be one.

    Raises:
        UsageError: It may not.
    """
    if not isinstance(user_id, str) or not user_id:
        raise UsageError("user_id= is a text that is not empty", found=describe(user_id))
    return user_id


def refuse_other(known: SegmentCall, call: SegmentCall, plan: SegmentPlan) -> None:
    """Refuse an id that a run of another pipeline or user has.

    Raises:
        DistributedRunError: One has.
    """
    run_id = call.run_id
    if known.fingerprint != call.fingerprint:
        raise DistributedRunError(
            f"run {run_id!r} is a run of another pipeline, or of another version of {plan.name}",
            run_id=run_id,
            found=f"steps and schemas {known.fingerprint[:12]} instead of {call.fingerprint[:12]}",
            help="give each run an id of its own",
        )
    if known.user_id != call.user_id:
        raise DistributedRunError(
            f"run {run_id!r} is a run of another user",
            run_id=run_id,
            found=f"user_id={call.user_id!r}",
            help="give each run an id of its own",
        )


def answering(stands: RunStatus, answers: Sequence[Any]) -> dict[str, Any]:
    """The answers of a call, by id of the question.

    Raises:
        DistributedRunError: The run does not wait for one of them, or has not failed.
        UsageError: One is none, or does not fit its question.
    """
    for each in answers:
        if not isinstance(each, Answer):
            raise UsageError(
                "answer(...) takes answers",
                found=describe(each),
                help="make one of a question: status.pending[0].answer(True)",
            )
    open = {each.id for each in stands.pending}
    wrong = [each.id for each in answers if each.id not in open]
    if stands.status not in ("waiting", "failed") or wrong:
        ids = ", ".join(map(repr, wrong))
        raise DistributedRunError(
            f"run {stands.run_id!r} does not wait for an answer"
            + (f" to {ids}" if stands.status == "waiting" else ""),
            run_id=stands.run_id,
            found=f"it is {stands.status}"
            + (f" and waits for {', '.join(map(repr, sorted(open)))}" if open else ""),
            help="status(run_id).pending has its open questions",
        )
    if stands.status == "waiting" and not answers:
        raise DistributedRunError(
            f"run {stands.run_id!r} waits for an answer, and none was given",
            run_id=stands.run_id,
            found=", ".join(each.name or each.id for each in stands.pending),
            help="answer one of these",
        )
    asked = {each.id: each for each in stands.pending}
    for each in answers:
        fault = answer_fault(asked[each.id], each.value)
        if fault is not None:  # nothing is written: the question is still open
            raise UsageError(fault.what, help=fault.help)
        if problem := storage_fault(each.value):
            what = f"the answer to {asked[each.id].name!r} cannot cross"
            raise UsageError(what, found=f"it{problem.path} {problem.says}", help=problem.help)
    return {each.id: each.value for each in answers}


def error_in(row: WorkflowStatus) -> dict[str, str]:
    """The error of a call that did not come to a result, such as one of the database."""
    kept: Any = row.error
    if not isinstance(kept, dict):  # it began too often: each worker that took it has died
        return {"type": row.status, "message": str(kept or "the call never ended"), "help": _AGAIN}
    told = cast("dict[str, str]", kept)
    message = told["message"].partition("\n")[0]
    return {"type": told["error"], "message": message, "help": _AGAIN}
