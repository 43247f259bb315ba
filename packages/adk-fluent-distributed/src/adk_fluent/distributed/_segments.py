"""Where a pipeline is cut: its segments, each an App of ADK's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from adk_fluent.distributed._database import Address
from adk_fluent.distributed._errors import BoundaryError
from adk_fluent.distributed._fingerprint import fingerprint_of
from adk_fluent.distributed._peers import is_peer, peer_step
from adk_fluent.extend import describe, public_address
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    ExecutionBoundary,
    ExecutionConfig,
    Node,
    ParallelNode,
    RaceNode,
    ScalingConfig,
    SequenceNode,
    TransportConfig,
    map,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.apps import App

_DATABASES: Final = ("postgresql", "postgres", "sqlite")
#: What carries other transports.
_NEEDS: Final = {
    "pubsub": "Google Cloud Pub/Sub (google-cloud-pubsub)",
    "nats": "a NATS server with JetStream (nats-py)",
    "redis": "a Redis server (redis)",
    "amqp": "a RabbitMQ server (aio-pika)",
    "kafka": "a Kafka cluster (aiokafka)",
    "restate": "a Restate server (restate-sdk)",
    "temporal": "a Temporal server (temporalio)",
}
#: What the flow engine calls the segment outside of every boundary.
OUTSIDE: Final = ""


class Pipeline(Protocol):
    """Whatever has an IR: every builder."""

    def to_ir(self) -> Node:
        """The pipeline as IR."""
        ...


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a pipeline that one worker runs at a time.

    Attributes:
        name: The step it is bounded by; the pipeline's name for what is outside of every boundary.
        part: What the flow engine calls it: the name, or "" for the outermost segment.
        boundary: How it is hosted; None for the outermost segment.
    """

    name: str
    part: str
    boundary: ExecutionBoundary | None = None


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """A pipeline and its segments; made by `split`.

    Attributes:
        node: The pipeline, as every segment compiles it.
        segments: The segments, the outermost first, then in the order of the expression.
        fingerprint: Same for pipelines with the same steps and schemas; a run resumes on no
            other.
        first: The segment that runs begin in.
    """

    node: Node
    segments: tuple[Segment, ...]
    fingerprint: str
    first: str

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self.segments[0].name

    @property
    def codecs(self) -> tuple[str, ...]:
        """The codecs that boundaries name; state may hold what any of them carries."""
        named = (each.boundary.serialization for each in self.segments if each.boundary is not None)
        return tuple(dict.fromkeys(named))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the segments."""
        return tuple(each.name for each in self.segments)

    @property
    def entered(self) -> tuple[str, ...]:
        """The names of the segments that a run may enter.

        Where all that is outside of every boundary is sequences, nothing is ever done there.
        """
        root = self.node.root if isinstance(self.node, AppNode) else self.node
        return self.names[1:] if _is_hollow(root) else self.names

    def __getitem__(self, name: str) -> Segment:
        """The segment of this name.

        Raises:
            BoundaryError: There is none.
        """
        for each in self.segments:
            if each.name == name:
                return each
        raise BoundaryError(
            f"{self.name} has no segment {name!r}",
            found=", ".join(self.names),
            help="name one of these; a segment has the name of the step that has the boundary",
        )

    def named(self, part: str) -> str:
        """The name of the segment that the flow engine calls so."""
        return next(each.name for each in self.segments if each.part == part)

    def to_app(self, name: str, config: ExecutionConfig | None = None) -> App:
        """Compile one segment to an App of ADK's.

        The Apps of a plan share the App's name and so their sessions. A run of one does the steps
        of its segment and stops, resumable, before those of another.

        Args:
            name: The segment.
            config: How it runs; None is the pipeline's own configuration.

        Raises:
            BoundaryError: There is no such segment.
        """
        from adk_fluent.backends.adk import ADKBackend  # noqa: PLC0415  # imports ADK

        return ADKBackend().compile_segment(self.node, config, segment=self[name].part).app


def split(pipeline: Pipeline | Node) -> SegmentPlan:
    """Cut a pipeline at its execution boundaries.

    Args:
        pipeline: A builder, or IR.

    Raises:
        BoundaryError: A boundary stands where a run cannot be cut: inside a race, below an agent
            that transfers or calls, or at two different steps of one name; or no A2A server can be
            asked for the part that it bounds.
    """
    node = node_of(pipeline)
    root = node.root if isinstance(node, AppNode) else node
    if any(is_peer(each) for each in _cut(root)):
        node = map(node, lambda each: peer_step(each) if is_peer(each) else each)
        root = node.root if isinstance(node, AppNode) else node
    found = {OUTSIDE: Segment(root.name, OUTSIDE)} if root.boundary is None else {}
    bounded: dict[str, Node] = {}
    for each in _cut(root):
        known = bounded.setdefault(each.name, each)
        if known != each or (each is not root and each.name == root.name):
            raise BoundaryError(
                f"two steps named {each.name!r} would be one segment",
                node=each,
                found=f"boundaries at different steps named {each.name!r}",
                help="give each step with an execution boundary a name of its own",
            )
        found.setdefault(each.name, Segment(each.name, each.name, each.boundary))
    plain = map(node, _plain)
    return SegmentPlan(plain, tuple(found.values()), fingerprint_of(plain), _first(root))


def _first(root: Node) -> str:
    """The segment of the first step; where there is a choice, that of who chooses."""
    node = root
    while node.boundary is None and isinstance(node, SequenceNode) and node.children:
        node = node.children[0]
    return root.name if node.boundary is None else node.name


def _is_hollow(node: Node) -> bool:
    """Whether a step does nothing but what is in segments of others."""
    return (
        node.boundary is None
        and isinstance(node, SequenceNode)
        and bool(node.children)
        and all(each.boundary is not None or _is_hollow(each) for each in node.children)
    )


def node_of(pipeline: Any) -> Node:
    """The IR of a pipeline.

    Raises:
        BoundaryError: It is none.
    """
    if isinstance(pipeline, Node):
        return pipeline
    if hasattr(pipeline, "to_ir") and not isinstance(pipeline, type):
        return cast("Pipeline", pipeline).to_ir()
    raise BoundaryError(
        "a distributed run takes a pipeline",
        found=describe(pipeline),
        help="give a builder such as Agent(...) >> Agent(...), or IR",
    )


def _cut(root: Node) -> Iterator[Node]:
    """The steps with a boundary, in the order of the expression.

    Raises:
        BoundaryError: A run cannot be cut there.
    """
    todo = [root]
    while todo:
        node = todo.pop()
        if node.boundary is not None:
            yield node
        if isinstance(node, RaceNode) or (
            isinstance(node, ParallelNode) and node.merge == "first_complete"
        ):
            _refuse(node, "inside a race", "put the boundary at the race itself")
        if isinstance(node, AgentNode):
            _refuse(node, "below an agent", "put the boundary at that agent")
            continue
        todo.extend(reversed(node.children))


def _refuse(node: Node, where: str, help: str) -> None:
    for each in walk(node):
        if each is not node and each.boundary is not None:
            raise BoundaryError(
                f"the execution boundary of {each.name!r} stands {where}, {node.name!r}",
                node=each,
                found="a run that cannot be cut there: its branches would not start together"
                if where == "inside a race"
                else "an agent that hands over by itself",
                help=help,
            )


def _plain(node: Node) -> Node:
    """The node with a boundary that says where, and nothing else; how is the engine's."""
    if node.boundary is None:
        return node
    return node.replace(boundary=ExecutionBoundary())


def check_hosting(segment: Segment, *, url: str | None) -> None:
    """Refuse a segment that an engine of this version cannot host.

    Args:
        segment: The segment.
        url: The database of the engine: "" for one in memory, None for any.

    Raises:
        BoundaryError: It asks for a transport or an isolation that is not there.
    """
    boundary = segment.boundary
    if boundary is None:
        return
    if boundary.isolation != "none" and url == "":
        raise _not_hosted(segment, f"isolation={boundary.isolation!r}", "DbosEngine")
    transport = boundary.transport or TransportConfig()
    _check_transport(segment, transport, url)
    if transport.timeout_seconds is not None:
        raise _not_hosted(
            segment, "timeout_seconds= of the transport", "timeout(...) steps instead"
        )
    scaling = boundary.scaling or ScalingConfig()
    if scaling.min_instances:
        raise _not_hosted(segment, "min_instances=", "somebody who starts workers, as you do")


def _check_transport(segment: Segment, transport: TransportConfig, url: str | None) -> None:
    endpoint = transport.endpoint
    if endpoint is None or endpoint == url:
        return
    found = f"TransportConfig(type={transport.type!r}, endpoint={public_address(endpoint or '')!r})"
    scheme = (endpoint or "").partition(":")[0]
    if scheme in _DATABASES:
        if url is not None and Address.of(endpoint).url != url:
            raise _not_hosted(segment, found, "an engine of that database: DbosEngine(endpoint)")
        return
    needs = _NEEDS.get(scheme, "an engine of its own")
    raise _not_hosted(segment, found, f"{needs}, which this version has not")


def _not_hosted(segment: Segment, found: str, needs: str) -> BoundaryError:
    return BoundaryError(
        f"this engine cannot host segment {segment.name!r}", found=found, help=f"it needs {needs}"
    )


def durable(config: ExecutionConfig | None, node: Node) -> ExecutionConfig:
    """How a pipeline runs, with its position kept after every step."""
    own = node.execution if isinstance(node, AppNode) else None
    return replace(config or own or ExecutionConfig(), resumable=True)
