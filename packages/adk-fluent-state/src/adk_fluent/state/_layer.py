"""What this package provides, as data: nothing it names is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Entry, Layer

_HERE = "adk_fluent.state"

LAYER = Layer(
    "state",
    {
        "names": tuple(
            Entry(f"{_HERE}:{name}", name)
            for name in ("AppScoped", "SessionScoped", "StateSchema", "Temp", "UserScoped")
        ),
    },
)
