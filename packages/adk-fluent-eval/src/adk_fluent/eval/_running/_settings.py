"""How a suite is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from adk_fluent.eval._metrics import JUDGE_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.eval._cases._simulation import UserSimulation
    from adk_fluent.eval._running._cache import ResponseCache
    from adk_fluent.protocol import PriceBook

EngineName = Literal["auto", "light", "local"]


@dataclass(slots=True)
class Settings:
    """What all runs of a suite share.

    Attributes:
        suite: The suite's name.
        engine: Who runs the cases.
        session_service: ADK's; None gives each run one in memory.
        artifact_service: ADK's; None gives each run one in memory.
        memory_service: ADK's; None gives each run one in memory.
        plugins: Plugins of ADK's, after those of the pipeline.
        cache: Where answers of models are kept.
        model: What answers in the place of all models; None leaves each its own.
        judge_model: What judges.
        judge_samples: How often it is asked for each turn.
        simulation: Who plays the user, where cases do not say.
        prices: What tokens cost.
        timeout_s: Seconds after which a run is ended, where cases do not say.
    """

    suite: str
    engine: Literal["light", "local"] = "light"
    session_service: Any = None
    artifact_service: Any = None
    memory_service: Any = None
    plugins: Sequence[Any] = ()
    cache: ResponseCache | None = None
    model: Any = None
    judge_model: Any = None
    judge_samples: int = JUDGE_SAMPLES
    simulation: UserSimulation | None = None
    prices: PriceBook | None = None
    timeout_s: float | None = None
