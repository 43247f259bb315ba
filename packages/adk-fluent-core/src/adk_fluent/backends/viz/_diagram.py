"""What a picture shows, as data; every format is written from this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: What a box stands for; formats choose its shape and colours by it.
BoxKind = Literal[
    "start",
    "end",
    "agent",
    "remote",
    "function",
    "look",  # taps and expectations: they change nothing
    "gate",
    "transfer",
    "fork",  # where a composite begins
    "choice",  # where a test decides
    "join",  # all branches meet
    "merge",  # one branch arrives
    "folded",
    "other",
]
LinkKind = Literal["flow", "again", "calls", "transfer"]
ClusterKind = Literal["part", "boundary"]


@dataclass(frozen=True, slots=True)
class Box:
    """One thing of the picture.

    Attributes:
        kind: What it stands for.
        title: Its name.
        lines: What stands below its name.
        hint: What more there is to say, shown on request.
        reads: State keys it reads.
        writes: State keys it writes.
        cluster: The innermost cluster it stands in.
    """

    kind: BoxKind
    title: str = ""
    lines: tuple[str, ...] = ()
    hint: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    cluster: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """What comes after what.

    Attributes:
        source: Index of the box it leaves.
        target: Index of the box it leads to.
        kind: ``flow`` in order, ``again`` back to a loop's head, ``calls`` from an agent to those
            it may call or hand over to, ``transfer`` to an agent elsewhere in the pipeline.
        label: When, or why.
    """

    source: int
    target: int
    kind: LinkKind = "flow"
    label: str = ""


@dataclass(frozen=True, slots=True)
class DataLink:
    """A state key that one box may write and another may find so.

    Attributes:
        source: Index of the box that writes.
        target: Index of the box that reads.
        key: The key.
    """

    source: int
    target: int
    key: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """A frame around boxes.

    Attributes:
        kind: ``boundary`` for what may run elsewhere.
        title: What it says.
        parent: The cluster it stands in.
    """

    kind: ClusterKind
    title: str
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One of several blocks side by side.

    Attributes:
        block: Its block; None for a way past the others.
        enter: Index of the link that leads to it.
        leave: Index of the link that leads from it; None when nothing comes after it.
    """

    block: int | None
    enter: int | None
    leave: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """How boxes are arranged: one box, a stack of blocks, a frame, or columns side by side.

    Attributes:
        box: The box that this block is.
        stack: The blocks below each other.
        back: Of a stack, the link from its last box to its first.
        columns: The blocks beside each other.
        meets: Of columns, who finds what they wrote: ``all`` were there, ``one`` was, or none need
            have been (``maybe``).
        cluster: The frame around the one block of the stack.
    """

    box: int | None = None
    stack: tuple[int, ...] = ()
    back: int | None = None
    columns: tuple[Column, ...] = ()
    meets: Literal["all", "one", "maybe"] = "all"
    cluster: int | None = None

    @property
    def below(self) -> tuple[int, ...]:
        """The blocks it is made of."""
        columns = tuple(each.block for each in self.columns if each.block is not None)
        return self.stack or columns


@dataclass(frozen=True, slots=True)
class Diagram:
    """A pipeline as a picture, before it has a format. References are positions in the tuples.

    Attributes:
        title: The pipeline's name.
        heading: What stands above the picture; empty where a box says it, or nothing is to be said.
        summary: What the picture shows, in a sentence.
        boxes: In the order in which they are met.
        links: In the order in which they are met.
        data: Which box may find in state what which other box wrote; empty when switched off.
        clusters: Outer ones come first.
        blocks: How boxes are arranged; parts come first, the whole comes last. A column is a stack.
        data_flow: Whether data links are shown.
    """

    title: str
    summary: str = ""
    boxes: tuple[Box, ...] = ()
    links: tuple[Link, ...] = ()
    data: tuple[DataLink, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    blocks: tuple[Block, ...] = ()
    data_flow: bool = True
    heading: str = ""
