"""The tools and steps that a case names, held against those of its pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.errors import nearest_name
from adk_fluent.eval._cases._case import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._errors import EvalError
    from adk_fluent.eval._running._target_adk import Target

_DOTTED: Final = "if {!r} is a key of state, let initial_state= have it"
_INNER: Final = "expect a call of the tool around it; FluentJudge(fn=...) sees all steps"


def check_tools(case: FluentCase, target: Target) -> None:
    """Look whether the tools that a case names are there.

    Raises:
        EvalError: One is not.
    """
    if target.open:
        return
    expected = [call.name for turn in case.turns for call in turn.trajectory or ()]
    for what, names in (
        ("expects a call of", expected),
        ("mocks", case.mock_tool_outputs or {}),
    ):
        for name in names:
            if name not in target.tools:
                raise _absent(case, f"it {what} tool {name!r}", name, target.own_tools, "tools")
    for name in expected:
        if name in target.inner_tools:
            raise case.error(
                f"it expects a call of tool {name!r}, which an agent inside of a tool calls",
                found="a session of its own, of which the case's session has the answer alone",
                help=_INNER,
            )


def check_steps(case: FluentCase, target: Target) -> None:
    """Look whether steps whose writes are expected are there.

    A key of state may have a dot as well. One that a case begins with is such a key; of others
    nobody can tell, so that what would hold without any such step is refused.
    """
    if target.open:
        return
    given = {key_of(ref) for ref in case.initial_state or {}}
    for turn in (case, *case.turns):
        for ref, expected in (turn.state_assertions or {}).items():
            key = key_of(ref)
            step, dot, _ = key.partition(".")
            if not dot or step in target.steps or key in given:
                continue
            if not isinstance(ref, str) or ":" in step:
                continue  # "user:a.b" and typed references are nothing but keys
            if expected is None or nearest_name(step, target.steps):
                what = f"it expects what step {step!r} writes"
                other = _DOTTED.format(key)
                raise _absent(case, what, step, target.steps, "steps", other=other)


def counts(case: FluentCase) -> bool:
    """Whether a case has a budget of what is counted."""
    budgets = (case.max_tokens, case.max_cost_usd, case.max_tool_calls)
    return any(each is not None for each in budgets)


def check_hidden(case: FluentCase, target: Target) -> None:
    """Look whether a case asks for what agents do that run without plugins, and so unseen.

    Raises:
        EvalError: It has a budget, or expects what one of them writes.
    """
    if not target.hidden:
        return
    asked = [key_of(ref) for turn in (case, *case.turns) for ref in turn.state_assertions or {}]
    written = [key for key in asked if key.partition(".")[0] in target.hidden and "." in key]
    if written or counts(case):
        raise case.error(
            f"it expects {written[0]!r}" if written else "it has a budget",
            found=f"AgentTool(include_plugins=False): {', '.join(sorted(target.hidden))}",
            help="what runs without plugins cannot be seen; leave include_plugins= out",
        )


def _absent(
    case: FluentCase,
    what: str,
    name: str,
    known: Iterable[str],
    kind: str,
    *,
    other: str = "",
) -> EvalError:
    names = sorted(known)
    near = nearest_name(name, names)
    return case.error(
        f"{what}, and the pipeline has none of that name",
        found=f"{kind}: {', '.join(names)}" if names else f"no {kind}",
        help="; ".join(filter(None, (near and f"did you mean {near!r}?", other)))
        or "check the name",
    )
