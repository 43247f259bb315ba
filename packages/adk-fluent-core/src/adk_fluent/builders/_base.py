"""What every builder has: a name, a place in the user's source, and a node made when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from adk_fluent._arguments import one_of
from adk_fluent.builders._aboard import Aboard, as_stack, check_scoped
from adk_fluent.builders._contract import as_boundary, as_code, as_state_rules, promised
from adk_fluent.builders._models import as_model, with_default_model
from adk_fluent.builders._names import checked_name
from adk_fluent.builders._operands import Operand, instance_of, positive, some
from adk_fluent.builders._resources import as_resource
from adk_fluent.builders._running import Running
from adk_fluent.builders._settings import as_text
from adk_fluent.builders._synonyms import METHODS
from adk_fluent.builders._types import Out_co
from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.ir import (
    BUFFERINGS,
    ENFORCEMENTS,
    SERIALIZATIONS,
    UNSET,
    AppNode,
    Buffering,
    Contract,
    EdgeSemantics,
    Enforcement,
    ExecutionBoundary,
    Location,
    MiddlewareNode,
    MiddlewareRef,
    Node,
    ScalingConfig,
    SequenceNode,
    Serialization,
    TransportConfig,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self

    from google.adk.agents import BaseAgent

    from adk_fluent.builders._execution import Runs
    from adk_fluent.builders._models import Model
    from adk_fluent.builders._types import KeyLike, ModelLike, StepFunction
    from adk_fluent.protocol import AnyMiddleware, StateRules

# What stands in quotes is not there yet, or needs ADK.

#: A builder, IR, or an ADK agent.
AgentLike: TypeAlias = "BuilderBase | Node | BaseAgent"

#: The same, or a function over state.
StepLike: TypeAlias = "AgentLike | StepFunction"

#: Values of the key written last (str, number, bool or None), each with what runs then.
Branches: TypeAlias = "Mapping[Any, StepLike]"


class BuilderBase(Running[Out_co], Operand):
    """The part of a builder that has nothing to do with what it builds.

    Setters change the builder and return it. Putting a builder into another one, or next to an
    operator, takes a snapshot: later setters on it change nothing that was built from it.
    """

    __slots__ = (
        *("_aboard", "_boundary", "_contract", "_description", "_edge"),
        *("_ir", "_location", "_model", "_name", "_node", "_scoped"),
    )

    #: The name of what has none, and the word for it in messages.
    _kind: ClassVar[str] = "builder"

    def __init__(self, name: str | None = None) -> None:
        self._name = None if name is None else checked_name(name, type(self).__name__)
        self._location = Location.caller()
        self._model: Model | None = None
        self._aboard = Aboard()
        self._boundary: ExecutionBoundary | None = None
        self._contract: Contract | None = None
        self._description: str | None = None
        self._edge: EdgeSemantics | None = None
        self._node: Node | None = None
        self._ir: Node | None = None
        self._scoped: tuple[object, ...] = ()
        self._runs: Runs | None = None

    # --- what it is ----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name; what has none is called after its kind."""
        return self._name or self._kind

    @property
    def location(self) -> Location | None:
        """Where in the user's source it was made."""
        return self._location

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    # --- setters -------------------------------------------------------------------------------

    def named(self, name: str) -> Self:
        """Give it another name: an identifier that ADK does not keep for itself."""
        self._name = checked_name(name, type(self).__name__)
        return self._changed()

    def description(self, text: str) -> Self:
        """Say what it is for, to agents that may call it as a tool or transfer to it.

        ADK's ``description``.
        """
        self._description = as_text(text, ".description(...)")
        return self._changed()

    def model(self, model: ModelLike) -> Self:
        """Set the model of agents below that name none and stand in no nearer builder that does.

        Args:
            model: A model name, or an ADK model.
        """
        self._model = as_model(model)
        return self._changed()

    def middleware(
        self,
        *middlewares: AnyMiddleware | MiddlewareRef,
        scope: Literal["pipeline", "agent"] = "pipeline",
    ) -> Self:
        """Add middlewares, inside those added before.

        Args:
            *middlewares: One or several, outermost first; each an object, or its name and settings.
            scope: What passes through it: ``"pipeline"``, the whole run that this becomes part of;
                ``"agent"``, this alone and what is below it. That has no hooks of runs.

        Raises:
            UsageError: It is no middleware, or in this scope none of its hooks would be asked.
        """
        from adk_fluent._middlewares import check_stacked  # noqa: PLC0415  # slow to import

        for each in some(middlewares, ".middleware(...)", "a middleware"):
            check_stacked(each)
        if one_of(scope, ("pipeline", "agent"), "scope") == "pipeline":
            return self._board(Aboard(middlewares))
        for each in middlewares:
            check_scoped(each)
        self._scoped = (*self._scoped, *middlewares)
        return self._changed()

    def inject(self, /, **resources: object) -> Self:
        """Give functions of the pipeline what their parameters name.

        Tools, function steps, predicates, callbacks and instruction functions that have a parameter
        of a resource's name get it there; a model does not see that parameter.

        Args:
            **resources: Objects, which are injected as they are, or `Resource(...)`, which is made
                when it is needed.

        Raises:
            UsageError: One of that name is injected already, or the name cannot be used.
        """
        some(tuple(resources), ".inject(...)", "a resource")
        made = tuple(as_resource(name, value) for name, value in resources.items())
        return self._board(Aboard(resources=made))

    def stream_to(
        self,
        buffering: Buffering = "full",
        *,
        chunk_size: int | None = None,
        backpressure: bool = False,
    ) -> Self:
        """Set how its output flows to the step behind it, or to the caller.

        Args:
            buffering: ``full`` waits for the whole output, ``chunked`` hands it on in pieces,
                ``token`` as it comes.
            chunk_size: Tokens in a piece; for ``chunked``, and only there.
            backpressure: It waits while the step behind it is busy.
        """
        one_of(buffering, BUFFERINGS, "buffering")
        if (buffering == "chunked") is (chunk_size is None):
            raise UsageError(
                "chunk_size= goes with buffering='chunked', and with nothing else",
                found=f"buffering={buffering!r}, chunk_size={chunk_size!r}",
                help='such as .stream_to("chunked", chunk_size=32)',
            )
        if chunk_size is not None:
            positive(chunk_size, "chunk_size", whole=True)
        self._edge = EdgeSemantics(buffering, bool(backpressure), chunk_size)
        return self._changed()

    def execution_boundary(
        self,
        *,
        serialization: Serialization = "json",
        transport: TransportConfig | None = None,
        isolation: Literal["none", "process", "container"] = "none",
        scaling: ScalingConfig | None = None,
    ) -> Self:
        """Say that this part may run elsewhere; running it so needs the layer ``distributed``.

        Args:
            serialization: What state may hold where it crosses: JSON, or what a codec carries, too.
            transport: What carries it.
            isolation: What separates it from the rest.
            scaling: How many workers serve it.
        """
        self._boundary = ExecutionBoundary(
            one_of(serialization, SERIALIZATIONS, "serialization"),
            instance_of(TransportConfig, transport, "transport"),
            one_of(isolation, ("none", "process", "container"), "isolation"),
            instance_of(ScalingConfig, scaling, "scaling"),
        )
        return self._changed()

    def state(
        self,
        schema: StateRules,
        *,
        enforce: Enforcement = "error",
        extra: Literal["forbid", "allow"] = "forbid",
    ) -> Self:
        """Keep everything in it to a state schema, in checks and in runs.

        Args:
            schema: A subclass of `adk_fluent.state.StateSchema`.
            enforce: What happens to a write in a run that breaks it: ``error`` stops the run,
                ``warn`` logs it, ``off`` leaves it to the checks.
            extra: ``forbid`` refuses keys that the schema does not declare.
        """
        return self._promise(
            schema=as_state_rules(schema, ".state(...)"),
            enforce=one_of(enforce, ENFORCEMENTS, "enforce"),
            extra=one_of(extra, ("forbid", "allow"), "extra"),
        )

    def contract(
        self,
        *,
        inputs: Iterable[KeyLike] | None = None,
        outputs: Iterable[KeyLike] | None = None,
    ) -> Self:
        """Say what state it begins with and what of it is read afterwards.

        Args:
            inputs: Keys that have a value when it begins; checks then know all of them, and no
                other key has one.
            outputs: Keys that somebody reads when it is done.
        """
        promised: dict[str, Any] = {}
        for name, keys in (("inputs", inputs), ("outputs", outputs)):
            if keys is not None:
                promised[name] = as_boundary(keys, f".contract({name}=...)")
        return self._promise(**promised)

    def allow(self, *codes: str) -> Self:
        """Say that findings of these codes are meant to be so, in it and in what is below it.

        Args:
            *codes: Such as ``"FLW008"``; checks no longer report them here.

        Raises:
            UsageError: It does not look like a code.
        """
        some(codes, ".allow(...)", 'a code such as "FLW008"')
        known = () if self._contract is None else self._contract.allow
        return self._promise(allow=tuple(dict.fromkeys((*known, *map(as_code, codes)))))

    def _promise(self, **changes: Any) -> Self:
        self._contract = promised(self._contract, **changes)
        return self._changed()

    def clone(self, name: str | None = None) -> Self:
        """An independent copy, with another name if one is given."""
        new = self._copy()
        return new if name is None else new.named(name)

    def with_(self, *, name: str = UNSET, model: ModelLike = UNSET) -> Self:
        """A copy with some settings changed; this builder stays as it is."""
        return self._with(named=name, model=model)

    @property
    def _middlewares(self) -> list[object]:
        """Those of the whole run, outermost first."""
        return list(self._aboard.middlewares)

    # --- to IR ---------------------------------------------------------------------------------

    def to_ir(self) -> Node:
        """The pipeline as IR; the same object until a setter changes something."""
        if self._ir is None:
            node = self._snapshot()
            if any(self._aboard):
                stack, resources = self._aboard.stack, self._aboard.resources
                node = AppNode(
                    node.name,
                    node,
                    resources=resources,
                    middlewares=stack,
                    location=self._location,
                )
            self._ir = node
        return self._ir

    def build(self) -> Node:
        """The same as `to_ir`."""
        return self.to_ir()

    # --- for subclasses ------------------------------------------------------------------------

    def _freeze(self) -> Node:
        """Make the node; agents in it that have no model get this builder's afterwards."""
        raise NotImplementedError

    def _encloses(self) -> bool:
        """Whether there may be agents below."""
        return True

    def _snapshot(self) -> Node:
        node = self._node
        if node is None:
            node = self._freeze()
            if self._boundary is not None:
                node = node.replace(boundary=self._boundary)
            if self._contract is not None:
                node = node.replace(contract=self._contract)
            if self._description is not None and node.description is None:
                node = node.replace(description=self._description)
            if self._model is not None and self._encloses():
                source = f"{self._kind} {self._name}" if self._name else f"its {self._kind}"
                node = with_default_model(node, self._model, source)
            if self._scoped:
                stack = as_stack(self._scoped)
                node = MiddlewareNode(node.name, node, stack, location=self._location)
            if self._edge is not None:  # to the step behind it, or to the caller
                node = SequenceNode("pipeline", (node,), (self._edge,), location=self._location)
            self._node = node
        return node

    def _board(self, others: Aboard) -> Self:
        """Take over what others have for the whole pipeline."""
        self._aboard = self._aboard.joined(others)
        return self._changed()

    def _changed(self) -> Self:
        self._node = self._ir = None
        return self

    def _copy(self) -> Self:
        new = object.__new__(type(self))
        for cls in type(self).__mro__:
            for slot in cls.__dict__.get("__slots__", ()):
                value = getattr(self, slot)
                setattr(new, slot, value.copy() if isinstance(value, list | dict) else value)
        new._location = Location.caller()
        new._runs = None
        return new._changed()

    def _with(self, **settings: Any) -> Self:
        new = self._copy()
        for setter, value in settings.items():
            if value is not UNSET:
                getattr(new, setter)(value)
        return new

    def _advice(self, name: str) -> str | None:
        """What to write instead of a method that does not exist, if that is known."""
        return None

    def __copy__(self) -> Self:
        return self._copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._copy()

    if not TYPE_CHECKING:  # a type checker must go on refusing what does not exist

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise _unknown(self, name)


def _unknown(builder: BuilderBase, name: str) -> UnknownNameError:
    kind = type(builder).__name__
    known = [known for known in dir(type(builder)) if not known.startswith("_")]
    owners = sorted(cls.__name__ for cls in _subclasses(BuilderBase) if hasattr(cls, name))
    help = builder._advice(name)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # same module
    if help is None:
        help = f"it is a method of {' and '.join(owners)}" if owners else METHODS.get(name)
    return UnknownNameError(
        f"{kind} {builder.name!r} has no method {name!r}",
        unknown=name,
        known=known,
        help=help,
    )


def _subclasses(cls: type[BuilderBase]) -> Iterator[type[BuilderBase]]:
    for below in cls.__subclasses__():
        yield below
        yield from _subclasses(below)
