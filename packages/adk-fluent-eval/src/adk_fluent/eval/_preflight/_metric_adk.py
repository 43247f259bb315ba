"""Whether a metric of ADK's can be computed here."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from google.adk.version import __version__ as adk_version

from adk_fluent.eval._scoring._wanted import unavailable

if TYPE_CHECKING:
    from adk_fluent.eval._metrics import Metric
    from adk_fluent.eval._running._settings import Settings

#: What ADK's evaluators sign in with to Google Cloud: the key alone, or the project.
_API_KEY: Final = "GOOGLE_API_KEY"
_PROJECT: Final = ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION")
_SIGN_IN: Final = f"set {_API_KEY}, or {' and '.join(_PROJECT)}; or leave the metric out"
VERSION: Final = tuple(int(each) for each in adk_version.split(".")[:2])


def check_metric(metric: Metric, settings: Settings) -> None:
    """Look whether a metric can be computed.

    Raises:
        MetricUnavailableError: It cannot, and what to do about it.
    """
    if metric.since > VERSION:
        since = ".".join(map(str, metric.since))
        raise unavailable(
            metric,
            f"google-adk {adk_version}",
            f"install google-adk>={since}, or leave the metric out",
        )
    if metric.by == "own":
        return
    if metric.by == "judge" and settings.judge_model is None:
        raise unavailable(
            metric, "no model to judge", 'give the suite one: judge_model="gemini-2.5-pro"'
        )
    module, _, name = metric.evaluator.partition(":")
    try:
        getattr(import_module(module), name)
    except ImportError as error:
        missing = error.name or str(error)
        raise unavailable(
            metric, f"{missing} is not installed", 'pip install "adk-fluent-eval[adk]"'
        ) from error
    except AttributeError as error:
        raise unavailable(
            metric, f"google-adk {adk_version} has no {name}", "leave the metric out"
        ) from error
    if metric.by == "cloud" and find_spec("vertexai") is None:
        raise unavailable(
            metric, "Google Cloud's libraries are absent", 'pip install "adk-fluent-eval[adk]"'
        )
    if metric.by == "cloud" and (missing := _not_signed_in()):
        raise unavailable(metric, missing, _SIGN_IN)


def _not_signed_in() -> str:
    """Why ADK finds nobody whom Google Cloud would compute something for; empty if it does."""
    if os.environ.get(_API_KEY):
        return ""
    missing = [name for name in _PROJECT if not os.environ.get(name)]
    if len(missing) == 1:
        return f"there is no {missing[0]} in the environment"
    if missing:
        return f"there is neither {_API_KEY} nor {' and '.join(_PROJECT)} in the environment"
    return ""
