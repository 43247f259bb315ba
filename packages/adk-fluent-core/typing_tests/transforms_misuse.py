"""Mistakes with `S` and `transfer` that type checkers find; never run."""
# ruff: noqa: TC001  # users import as they please

from __future__ import annotations

from datetime import date

from adk_fluent import Agent, S, transfer
from adk_fluent.builders import State

a = Agent("a")


def use(value: object) -> None:
    """Take what an operator makes, so that it is no unused expression."""
    print(value)


def stateless() -> int:
    return 1


def total(state: State) -> int:
    return len(state)


# --- values that JSON cannot hold ----------------------------------------------------------------

S.set(tags={"a", "b"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.set(pair=(1, 2))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.set(raw=b"bytes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.set(day=date(2026, 1, 1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.set(agent=a)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.set(fn=total)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.set(kind=int)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.default(tags={"a"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.user.set(tags={"a"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- keys ----------------------------------------------------------------------------------------

S.set("k", 1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
S.set({"k": 1})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
S.pick(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.pick(["a", "b"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.drop(a)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.rename("a", "b")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
S.rename(a=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.merge("a", "b")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
S.merge("a", "b", into=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.merge("a", "b", into="c", fn=", ")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.log(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.log("a", level="INFO")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.log("a", logger=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- functions -----------------------------------------------------------------------------------

S.transform("k")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
S.transform("k", 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.transform(total, "k")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.transform("k", stateless)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.compute(k=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.compute(k=stateless)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.compute(k="a + b")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.compute(k=total).reads(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.guard(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.guard("k", 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
S.guard(stateless)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- what does not exist -------------------------------------------------------------------------

S.sett(k=1)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
S.session.set(k=1)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
S.user.pick("k")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
S.user.guard("k")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
S.set(k=1).reads("n")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

# --- no steps ------------------------------------------------------------------------------------

use(a >> S)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a >> S.user)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(a >> S.set)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
use(S | a)  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]

# --- transfer ------------------------------------------------------------------------------------

transfer()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
transfer(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
transfer(total)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
transfer("a", "b")  # type: ignore[arg-type, call-arg]  # pyright: ignore[reportCallIssue]
transfer("a", when="b")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
transfer("a", when=total)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
