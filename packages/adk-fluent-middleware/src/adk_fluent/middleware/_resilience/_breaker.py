"""Models and tools that fail are left alone for a while.

Failures are counted within a sliding window, as resilience4j and Polly do; in a row, as `pybreaker`
counts them, one success among many failures would hide them all. Which errors count, probes that
are cancelled, and calls that began before a change are most of a breaker, so it is written here.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import Field

from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.middleware._errors import CircuitOpenError
from adk_fluent.middleware._resilience._names import chosen, model_name
from adk_fluent.protocol import (
    Clock,
    ModelCall,
    ModelReply,
    NextModel,
    NextTool,
    SystemClock,
    ToolCall,
    classify,
)
from adk_fluent.telemetry import count, measure

T = TypeVar("T")
State = Literal["closed", "half_open", "open"]
_GAUGE: Final[dict[State, float]] = {"closed": 0, "half_open": 1, "open": 2}


def _is_of_the_service(error: Exception) -> bool:
    return classify(error) == "retriable"


class Circuit:
    """One model's or tool's: a state machine without a task or a timer of its own.

    Args:
        options: The options, and the clock.
        kind: ``"model"`` or ``"tool"``.
        name: Its name.
    """

    def __init__(self, options: CircuitBreakerMiddleware, kind: str, name: str) -> None:
        named = "gen_ai.request.model" if kind == "model" else "gen_ai.tool.name"
        self._what = f"{kind} {name!r}"
        self._attributes = {"adk_fluent.call": kind, named: name}
        self._options = options
        self._lock = threading.RLock()  # a call that is dropped ends wherever it is collected
        self._state: State = "closed"
        self._age = 0  # how often the state has changed: calls of an earlier one decide nothing
        self._calls: deque[tuple[float, bool]] = deque()
        self._failures = 0
        self._open_until = 0.0
        self._probing = 0
        self._probed = 0
        self._lost_at = 0.0  # when the probes under way are given up

    @property
    def state(self) -> State:
        """How it stands now."""
        with self._lock:
            self._turn_half_open()
            return self._state

    def enter(self) -> int:
        """Begin a call.

        Returns:
            What to `leave` with.

        Raises:
            CircuitOpenError: It is open, or its probes are under way.
        """
        with self._lock:
            now = self._turn_half_open()
            if self._state == "half_open" and self._probing and now >= self._lost_at:
                self._become("half_open")  # they decide nothing any more, and others may go
            if self._state == "open":
                raise self._refusal("open", self._open_until - now)
            if self._state == "half_open":
                if self._probing + self._probed >= self._options.half_open_calls:
                    # at the latest: when the probe fails now
                    raise self._refusal("being probed", self._options.reset_after)
                self._probing += 1
                self._lost_at = now + self._options.reset_after
            return self._age

    def leave(self, permit: int, succeeded: bool | None) -> None:
        """End a call; None says nothing about the service."""
        with self._lock:
            if permit != self._age:
                return
            if self._state == "half_open":
                self._end_probe(succeeded)
            elif succeeded is not None:
                self._note(succeeded)

    def _refusal(self, state: str, seconds: float) -> CircuitOpenError:
        count("adk_fluent.breaker.rejections", 1, self._attributes)
        return CircuitOpenError(
            f"{self._what} is not called: it has failed too often of late",
            retry_after=seconds,
            found=f"its circuit is {state}",
            help=f"wait {seconds:.3g} seconds, or answer otherwise: models by a model_fallback",
        )

    def _turn_half_open(self) -> float:
        now = self._options.clock.monotonic()
        if self._state == "open" and now >= self._open_until:
            self._become("half_open")
        return now

    def _end_probe(self, succeeded: bool | None) -> None:
        self._probing -= 1
        if succeeded is False:
            self._open()
        elif succeeded:
            self._probed += 1
            if self._probed >= self._options.half_open_calls:
                self._become("closed")

    def _note(self, succeeded: bool) -> None:
        options, calls = self._options, self._calls
        now = options.clock.monotonic()
        calls.append((now, succeeded))
        self._failures += not succeeded
        while calls[0][0] <= now - options.window:
            self._failures -= not calls.popleft()[1]
        if (
            not succeeded
            and self._failures >= options.failures
            and self._failures >= options.failure_ratio * len(calls)
        ):
            self._open()

    def _open(self) -> None:
        self._open_until = self._options.clock.monotonic() + self._options.reset_after
        self._become("open")

    def _become(self, state: State) -> None:
        self._state = state
        self._age += 1
        self._calls.clear()
        self._failures = self._probing = self._probed = 0
        measure("adk_fluent.breaker.state", _GAUGE[state], self._attributes)


class Circuits(dict[tuple[str, str], Circuit]):
    """All circuits of a middleware, and of its copies."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Circuits, ())  # whoever unpickles it has seen no failures


@builtin
class CircuitBreakerMiddleware(BuiltIn):
    """Leaves a model alone for a while that fails too often, and tools that are named.

    Each model and each tool has a circuit of its own, shared by all runs of this object. It opens
    when, within a window, enough calls have failed and they are a large enough part of all. While
    it is open, calls are refused at once. Then a few are let through as probes: if they succeed
    it closes, if one fails it opens again. Failures are lost connections, timeouts, answers that
    were cut, and the statuses 429, 500, 502, 503, 504 and 529; other errors say nothing about the
    service.

    Attributes:
        failures: Failed calls within the window that open a circuit.
        failure_ratio: The part of the calls within the window that has to have failed as well.
        window: Seconds for which a call counts.
        reset_after: Seconds for which a circuit stays open; and after which a probe that has not
            ended is given up, so that another may go.
        half_open_calls: Probes after that; each of them has to succeed.
        models: Watch models.
        tools: Watch tools: none, all, or those of these names. All users share a circuit, so a
            tool that fails because of what it is asked for does not belong here.
        failure_if: Decides which errors speak of the service, instead of the rule above.
        clock: Where the time comes from.
    """

    failures: Annotated[int, Field(ge=1)] = 5
    failure_ratio: Annotated[float, Field(ge=0, le=1)] = 0.5
    window: Annotated[float, Field(gt=0)] = 60.0
    reset_after: Annotated[float, Field(gt=0)] = 30.0
    half_open_calls: Annotated[int, Field(ge=1)] = 1
    models: bool = True
    tools: bool | Sequence[str] = False  # one user's calls could keep all others from a tool
    failure_if: Callable[[Exception], bool] = dependency(default_factory=lambda: _is_of_the_service)
    clock: Clock = dependency(default_factory=SystemClock)
    _circuits: Circuits = field(default_factory=Circuits, init=False, repr=False)

    def state(self, name: str, kind: Literal["model", "tool"] = "model") -> State:
        """How the circuit of a model or a tool stands; closed, when it was never called."""
        circuit = self._circuits.get((kind, name))
        return "closed" if circuit is None else circuit.state

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Call the model, if its circuit lets it."""
        if not self.models:
            return await next(call)
        return await self._through("model", model_name(call), lambda: next(call))

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        """Call the tool, if its circuit lets it."""
        if not chosen(self.tools, call.name):
            return await next(call)
        return await self._through("tool", call.name, lambda: next(call))

    async def _through(self, kind: str, name: str, doing: Callable[[], Awaitable[T]]) -> T:
        circuit = self._circuit(kind, name)
        permit = circuit.enter()
        succeeded: bool | None = None  # nothing is said about it by a cancelled call
        try:
            made = await doing()
            succeeded = True
        except Exception as error:
            if self.failure_if(error):
                succeeded = False
            raise
        finally:
            circuit.leave(permit, succeeded)
        return made

    def _circuit(self, kind: str, name: str) -> Circuit:
        found = self._circuits.get((kind, name))
        return found or self._circuits.setdefault((kind, name), Circuit(self, kind, name))


#: `CircuitBreakerMiddleware` by its short name.
circuit_breaker = CircuitBreakerMiddleware
