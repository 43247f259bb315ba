"""Checks of a suite against its pipeline, before any model call."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool

from adk_fluent.backends.adk import resolve_model, to_content
from adk_fluent.errors import AdkFluentError, nearest_name
from adk_fluent.eval._cases._case import initial_state
from adk_fluent.eval._cases._turn import key_of
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._running._mocks import check_arguments, check_mocks
from adk_fluent.eval._values import error_line
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._running._case_run_adk import RunSettings
    from adk_fluent.eval._running._pipeline_adk import Target, Targets


def check_suite(
    cases: Sequence[FluentCase],
    targets: Targets,
    judges: Iterable[FluentJudge],
    settings: RunSettings,
) -> None:
    """Check everything that the cases name; no model is called."""
    for judge in judges:
        try:
            if judge.model is not None:
                resolve_model(judge.model)
        except (AdkFluentError, ValueError) as error:
            what = f"the model of judge {judge.name!r} cannot be used"
            raise EvalError(what, found=error_line(error)) from error
    for each in settings.plugins:
        if not isinstance(each, BasePlugin):
            raise EvalError("plugins= takes plugins of ADK", found=describe(each))
    for case in cases:
        if case.skip is None:
            settings.plan.of(case)
        check_mocks(case)
        initial_state(case)
        for turn in case.turns:
            to_content(turn.input)
        target = targets.of(case)
        names = [each.name for each in (*target.app.plugins, *settings.plugins)]
        if len(set(names)) < len(names):
            raise EvalError("two plugins have the same name", found=", ".join(names))
        _check_tools(case, target)
        _check_mock_arguments(case, target)
        _check_steps(case, target)
        if case.max_cost_usd is not None and settings.prices is None:
            raise case.error(
                "max_cost_usd= needs prices, and there is no price book",
                help="give run(prices=...), or: pip install adk-fluent-cost",
            )


def _check_tools(case: FluentCase, target: Target) -> None:
    expected = [call.name for turn in case.turns for call in turn.trajectory or ()]
    for what, names in (("expects a call of", expected), ("mocks", case.mock_tool_outputs or {})):
        for name in names:
            if not target.knows_tool(name):
                raise _unknown(case, f"it {what} tool {name!r}", name, target.tools, "tools")
    for name in case.mock_tool_outputs or {}:
        if name in target.hidden_tools or (name not in target.tools and "" in target.hidden_tools):
            raise case.error(
                f"it mocks tool {name!r}, which an agent calls that runs without plugins",
                found=f"agents inside tools: {', '.join(sorted(target.hidden))}",
                help="give its AgentTool include_plugins=True, or mock that tool",
            )
    for name in () if target.open else expected:
        if name in target.inner_tools:
            raise case.error(
                f"it expects a call of tool {name!r}, which only an agent inside a tool calls",
                found="its calls are in a session of their own",
                help="expect the call of the outer tool, or use a FluentJudge",
            )


def _check_mock_arguments(case: FluentCase, target: Target) -> None:
    for name in case.mock_tool_outputs or {} if not target.open else ():
        known = [_arguments(tool) for tool in target.tools.get(name, ())]
        if known and None not in known:
            check_arguments(case, name, sorted({each for names in known for each in names or ()}))


def _arguments(tool: Any) -> Iterable[str] | None:
    """The names of a tool's arguments; None if they are not known."""
    if not isinstance(tool, BaseTool):
        tool = FunctionTool(tool)
    try:
        if isinstance(tool, FunctionTool) and any(
            each.kind is each.VAR_KEYWORD for each in signature(tool.func).parameters.values()
        ):
            return None
        declared = tool._get_declaration()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # as ADK asks it
    except Exception:  # noqa: BLE001  # a broken tool is reported when it is used
        return None
    if declared is None:
        return None
    if declared.parameters_json_schema is not None:
        return tuple(declared.parameters_json_schema.get("properties") or ())
    return tuple((declared.parameters and declared.parameters.properties) or ())


def _check_steps(case: FluentCase, target: Target) -> None:
    """Check that steps in ``step.key`` exist; a key of state may have a dot, too."""
    given = {key_of(ref) for ref in case.initial_state or {}}
    for turn in (case, *case.turns):
        for ref, expected in (turn.state_assertions or {}).items():
            key = key_of(ref)
            step, dot, _ = key.partition(".")
            if not dot or step in target.steps or key in given or target.open:
                continue
            if not isinstance(ref, str) or ":" in step:
                continue  # typed references and scoped keys are keys
            # a key that is absent is None, so a misspelt step would pass
            if expected is None or nearest_name(step, target.steps):
                raise _unknown(
                    case, f"it expects what step {step!r} writes", step, target.steps, "steps"
                )


def _unknown(case: FluentCase, what: str, name: str, known: Iterable[str], kind: str) -> EvalError:
    names = sorted(known)
    near = nearest_name(name, names)
    return case.error(
        f"{what}, which the pipeline does not have",
        found=f"{kind}: {', '.join(names)}" if names else f"no {kind}",
        help=f"did you mean {near!r}?" if near else None,
    )
