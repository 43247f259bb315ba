"""The parameters of a test beside its case: each set of them has a report of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_fluent.eval._items._collect import One


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a test was given by ``pytest.mark.parametrize`` and by fixtures with parameters.

    Attributes:
        key: What tells one set from another, of one test, in any process.
        label: What people call it; empty where there is none.
    """

    key: str = ""
    label: str = ""


def parameters_of(spec: Any, one: One) -> Parameters:
    """The parameters of a test.

    Their ids tell them: values differ between processes, and pytest counts them anew for each test.

    Args:
        spec: What pytest knows of them.
        one: The run of the case, which is one of them.
    """
    if len(spec.params) == 1:
        return Parameters()
    ids = [*getattr(spec, "_idlist", [spec.id])]
    for own in (one.id, one.id.encode("unicode_escape").decode("ascii")):  # as pytest may write it
        if own in ids:
            ids.remove(own)  # whichever is its own: what is left is the same
            break
    return Parameters(json.dumps(ids), "-".join(ids))
