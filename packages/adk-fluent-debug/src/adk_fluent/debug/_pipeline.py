"""What a recording knows of its pipeline, and whether another one is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.debug._errors import PipelineMismatchError
from adk_fluent.ir import content_hash, walk

if TYPE_CHECKING:
    from adk_fluent.ir import Node

Data = dict[str, Any]


def pipeline_data(root: Node) -> Data:
    """What a pipeline is told by: its hash, and the name, kind and hash of each node."""
    nodes = [[each.name, type(each).__name__, content_hash(each)[:16]] for each in walk(root)]
    return {"hash": content_hash(root), "nodes": nodes}


def check_pipeline(recorded: Data | None, now: Data) -> None:
    """Refuse to replay the recording of another pipeline.

    Args:
        recorded: The pipeline of the recording.
        now: The one that is run.

    Raises:
        PipelineMismatchError: They are not the same.
    """
    if not recorded or recorded.get("hash") == now["hash"]:
        return
    was: list[list[str]] = recorded.get("nodes", [])
    has: list[list[str]] = now["nodes"]
    raise PipelineMismatchError(
        "this recording is of another pipeline than the one that is run",
        found=_changed(was, has),
        help="record again, or replay with on_mismatch='live'",
    )


def _changed(was: list[list[str]], has: list[list[str]]) -> str:
    """Which node has changed; of those nested in each other, the innermost."""
    before = {name: (kind, digest) for name, kind, digest in was}
    after = {name: (kind, digest) for name, kind, digest in has}
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    if gone or new:
        parts = [f"{name!r} is gone" for name in gone] + [f"{name!r} is new" for name in new]
        return "; ".join(parts)
    changed = [name for name in after if before[name] != after[name]]
    if not changed:
        return "the same nodes in another order"
    name = changed[-1]
    kinds = "" if before[name][0] == after[name][0] else f" from {before[name][0]}"
    return f"{after[name][0]} {name!r} has changed{kinds}"
