"""What can be known to be wrong with a suite before a model is called."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from google.adk.plugins.base_plugin import BasePlugin

from adk_fluent._words import describe
from adk_fluent.backends.adk import to_content
from adk_fluent.errors import AdkFluentError
from adk_fluent.eval._cases._state import initial_state
from adk_fluent.eval._checks._same import told
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._metrics import METRICS
from adk_fluent.eval._preflight._local_adk import check_inside, check_local
from adk_fluent.eval._preflight._metric_adk import check_metric
from adk_fluent.eval._preflight._mock_arguments_adk import check_mock_arguments
from adk_fluent.eval._preflight._model_adk import check_judge, check_model
from adk_fluent.eval._preflight._names import check_hidden, check_steps, check_tools
from adk_fluent.eval._preflight._part_adk import check_part
from adk_fluent.eval._running._instead import check_mocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._running._settings import Settings
    from adk_fluent.eval._running._target_adk import Target, Targets
    from adk_fluent.eval._scoring._wanted import Metrics


def check_suite(
    cases: Sequence[FluentCase],
    targets: Targets,
    metrics: Metrics,
    settings: Settings,
    pipeline: Any,
) -> None:
    """Look at everything that a suite names.

    Raises:
        EvalError: A tool, a step or a metric is not there, or cannot be had.
    """
    check_judge(settings.judge_model, is_needed=metrics.asks_a_judge)
    for name in metrics.names:
        if name in METRICS:
            check_metric(METRICS[name], settings)
    _check_plugins(settings)
    _check_timeout(settings.timeout_s)
    _check_prices(settings.prices)
    if settings.engine == "local":
        check_local(cases, settings)
    for case in cases:
        if case.skip is None:
            metrics.of(case)
        check_mocks(case)
        initial_state(case)
        for turn in case.turns:
            to_content(turn.input)
        target = _target_of(case, targets, pipeline)
        check_part(case, target)
        _check_plugin_names(target, settings)
        check_tools(case, target)
        check_mock_arguments(case, target)
        check_steps(case, target)
        check_hidden(case, target)
        if settings.engine == "local":
            check_inside(case, target)
        if case.max_cost_usd is not None and settings.prices is None:
            raise case.error(
                "max_cost_usd= needs prices, and there is no price book",
                help="give run(prices=...), or: pip install adk-fluent-cost",
            )
        for simulation in (case.simulation, settings.simulation):
            if simulation is not None and simulation.model is not None:
                check_model(simulation.model, "the model that plays the user")
    if settings.model is not None:
        check_model(settings.model, "the model of the run")


def _target_of(case: FluentCase, targets: Targets, pipeline: Any) -> Target:
    """What a case runs.

    Raises:
        EvalError: It is not there, or the function that makes it raised.
    """
    try:
        return targets.of(case)
    except AdkFluentError:  # it says enough by itself
        raise
    except Exception as error:
        if not targets.is_factory:
            raise
        name = getattr(pipeline, "__name__", "make")
        raise EvalError(
            "the function that makes the pipeline raised, so there is nothing to run",
            found=f"{name}(): {told(error)}",
            help="make it work by itself; it is called before any case is run",
        ) from error


def _check_timeout(seconds: Any) -> None:
    is_one = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (is_one and 0 < seconds < math.inf):
        raise EvalError("timeout_s= is no number of seconds above 0", found=describe(seconds))


def _check_prices(prices: Any) -> None:
    if prices is not None and (isinstance(prices, type) or not hasattr(prices, "price")):
        raise EvalError(
            "prices= is no price book",
            found=describe(prices),
            help="give an object with price(model, usage, at), such as adk-fluent-cost has",
        )


def _check_plugins(settings: Settings) -> None:
    for each in settings.plugins:
        if not isinstance(each, BasePlugin):
            raise EvalError(
                "plugins= takes plugins of ADK's", found=describe(each), help="plugins=[...]"
            )


def _check_plugin_names(target: Target, settings: Settings) -> None:
    names = [each.name for each in (*target.app.plugins, *settings.plugins)]
    for name in names:
        if names.count(name) > 1:
            raise EvalError(
                f"two plugins are called {name!r}",
                found=f"plugins: {', '.join(names)}",
                help="give one of them another name",
            )
