"""How much one server takes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from adk_fluent.errors import UsageError

_MOST_DEPTH: Final = 90  # protobuf reads JSON up to 100 levels


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a server takes before it refuses; every limit is on by default.

    Attributes:
        body_bytes: Bytes of a request's body.
        body_seconds: Seconds in which a body has to arrive.
        depth: Levels of nesting in a request's JSON, at most 90.
        parts: Parts of a message.
        concurrency: Tasks that run at the same time in this process.
        principal_concurrency: Tasks of one principal among those, where there is ``auth``.
        open_requests: Requests of one principal that are being answered, open streams included.
        requests_per_second: Requests of one principal, on average.
        burst: Requests of one principal at once.
        kept_tasks: Tasks that are kept in memory, where there is no ``task_store``. The principal
            that has most loses its oldest first, and with a context's last task its session.
        kept_bytes: Bytes of those tasks, their messages and answers included.
    """

    body_bytes: int = 4 << 20
    body_seconds: float = 30.0
    depth: int = 64
    parts: int = 100
    concurrency: int = 1000
    principal_concurrency: int = 500
    open_requests: int = 2000
    requests_per_second: float = 500.0
    burst: int = 1000
    kept_tasks: int = 10_000
    kept_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        _check_numbers(self, *(each.name for each in fields(self)))
        if self.depth > _MOST_DEPTH:
            raise UsageError(
                f"Limits(depth=...) is at most {_MOST_DEPTH}",
                found=repr(self.depth),
                help="the protocol's own reader goes no deeper",
            )


@dataclass(frozen=True, slots=True)
class PushPolicy:
    """Where push notifications may be sent.

    Attributes:
        allow_private: Also over http, and to addresses of this machine and of private networks;
            never to link-local ones, multicast, or the metadata services of clouds.
        per_task: Configs that one task may have.
        attempts: Tries of one delivery, with waits that double from a second.
        timeout: Seconds of one try.
    """

    allow_private: bool = False
    per_task: int = 5
    attempts: int = 4
    timeout: float = 10.0

    def __post_init__(self) -> None:
        if self.allow_private not in (True, False):
            found = repr(self.allow_private)
            raise UsageError("PushPolicy(allow_private=...) takes True or False", found=found)
        _check_numbers(self, "per_task", "attempts", "timeout")


def _check_numbers(given: Limits | PushPolicy, *names: str) -> None:
    kinds = {each.name: each.type for each in fields(given)}
    for name in names:
        value, what = getattr(given, name), f"{type(given).__name__}({name}=...)"
        whole = kinds[name] == "int"
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            kind = "a whole number" if whole else "a number"
            raise UsageError(f"{what} takes {kind}", found=repr(value))
        if not value > 0:
            raise UsageError(
                f"{what} is above 0",
                found=repr(value),
                help="to lift a limit, give a large number",
            )
