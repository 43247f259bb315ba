"""Every error adk-fluent raises by itself: what happened, where, what was found, what to do.

All of them derive from `AdkFluentError`, carry a stable `code`, and are also the standard library's
type where one fits, so that ``except TimeoutError`` works as a reader expects. Errors of models,
tools, functions and ADK are never wrapped: they keep their own type.

`BuildError` and its kin mean that the program is wrong and running it again cannot help;
`RunError` and its kin happen while a pipeline runs; the others are about what is installed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypedDict, TypeVar

from adk_fluent._caller import caller

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from adk_fluent.ir._ref import Location  # not of the package, which imports this module

__all__ = [
    "AdkFluentError",
    "AgentReportedError",
    "BuildError",
    "CheckerError",
    "ContractError",
    "CredentialsError",
    "DataFileError",
    "Details",
    "ErrorParts",
    "ExpectationError",
    "IRFormatError",
    "LayerError",
    "LegacyPackageError",
    "LegalityError",
    "MissingLayerError",
    "ModelRetry",
    "OutputInvalidError",
    "OutputMissingError",
    "Placed",
    "PlanChangedError",
    "RemoteError",
    "RunError",
    "SessionError",
    "SessionStoreError",
    "StateKeyError",
    "StateTypeError",
    "StepTimeoutError",
    "TargetError",
    "UnknownNameError",
    "UnstorableValueError",
    "UnsupportedConfigError",
    "UnsupportedNodeError",
    "UsageError",
    "add_place",
    "error_parts",
    "format_message",
    "nearest_name",
    "unwrap",
]

_E = TypeVar("_E", bound=BaseException)


class Placed(Protocol):
    """Something with a name and a place in the user's source: every IR node is one."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def location(self) -> Location | None:
        """The builder call that made it."""
        ...


class Details(TypedDict, total=False):
    """Where an error happened and what to do: keyword arguments every error takes.

    Attributes:
        node: The node concerned, or its name. A node brings its location along.
        location: The source line concerned.
        found: What was there instead of what was needed; never a secret.
        help: What the reader should do.
    """

    node: Placed | str | None
    location: Location | str | None
    found: str | None
    help: str | None


#: The note of `add_place`.
_PLACE: Final = re.compile(r"in node '(.+?)'(?: at (.+))?")
_DETAILS: Final = frozenset(Details.__annotations__)
#: What a terminal would obey, or no stream can be written: control characters other than tab and
#: line feed, marks of the direction of writing, halves of characters, and what is no character. It
#: is compiled when it is needed, as that takes longer than all else that is done here.
#: What makes texts fit to be shown (`_texts`) uses it, too.
UNSHOWN: Final = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029"
    r"\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def format_message(
    what: str,
    *,
    node: str | None = None,
    location: Location | str | None = None,
    found: str | None = None,
    help: str | None = None,
) -> str:
    """The one way a message of ours is laid out; absent parts take no line.

    What it quotes, of files and of models, is shown with control characters escaped.
    """
    place = " at ".join(str(part) for part in (node and f"node {node!r}", location) if part)
    rows = (("where", place), ("found", found), ("help", help))
    message = "\n".join([what, *(f"  {label}: {text}" for label, text in rows if text)])
    return message if message.isprintable() else re.sub(UNSHOWN, _escaped, message)


def _escaped(found: re.Match[str]) -> str:
    return repr(found.group())[1:-1]


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, or None when none is near."""
    from difflib import get_close_matches  # noqa: PLC0415  # slow to import, seldom needed

    names = sorted(set(known))
    found = get_close_matches(name, names, 1) or [k for k in names if k.lower() == name.lower()]
    return found[0] if found else None


class AdkFluentError(Exception):
    """The root of every error of adk-fluent; catch it to catch them all.

    Cause: see the subclass. Fix: follow the message's help line.

    Attributes:
        what: What happened, in one sentence.
        node: Name of the node concerned, if there is one.
        location: Source line concerned, if known.
        found: What was there instead.
        help: What to do.
    """

    #: Stands for this kind of error, and never changes.
    code: ClassVar[str] = "ADKF000"

    def __init__(self, what: str, **details: Unpack[Details]) -> None:
        super().__init__(what)
        node = details.get("node")
        location = details.get("location")
        self.what = what
        if node is None or isinstance(node, str):
            self.node: str | None = node
        else:
            self.node = node.name
            location = location or node.location
        self.location: Location | str | None = location
        self.found: str | None = details.get("found")
        self.help: str | None = details.get("help")

    def __str__(self) -> str:
        return format_message(
            self.what, node=self.node, location=self.location, found=self.found, help=self.help
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (type(self), self.args, self.__dict__.copy()))


def _restore(
    cls: type[AdkFluentError], args: tuple[Any, ...], fields: dict[str, Any]
) -> AdkFluentError:
    error: AdkFluentError = _layout_owner(cls).__new__(cls)
    error.args = args
    vars(error).update(fields)
    return error


def _layout_owner(cls: type) -> Any:
    """The built-in base whose `__new__` fits; the first one in the MRO need not be it."""
    while cls.__module__ != "builtins":
        cls = cls.__base__ or BaseException
    return cls


def _place_at_caller(error: AdkFluentError) -> None:
    """Without a better place, a mistake is where it was called from."""
    if error.node is None and error.location is None and (place := caller()) is not None:
        error.location = f"{place[0]}:{place[1]}"


# --- the program is wrong ------------------------------------------------------------------------


class BuildError(AdkFluentError, ValueError):
    """A pipeline as written cannot be built.

    Cause: a value, a combination of settings or a structure that has no meaning.
    Fix: change the builder call the message points at.
    """

    code = "ADKF100"

    def __init__(self, what: str, **details: Unpack[Details]) -> None:
        super().__init__(what, **details)
        _place_at_caller(self)


class UsageError(BuildError, TypeError):
    """A builder or function was given something it does not take.

    Cause: an argument of the wrong type, such as ``.tool(42)`` or ``agent >> 3``.
    Fix: pass what the help line names; pyright reports the same mistake before the run.
    """

    code = "ADKF101"


class UnknownNameError(BuildError, AttributeError, LookupError):
    """A name (method, field, node, slot, command) does not exist.

    Cause: a misspelling, or a name from another version.
    Fix: use the nearest name the message gives.

    Attributes:
        unknown: The name as given.
        nearest: The known name most like it, or None.
    """

    code = "ADKF102"

    def __init__(
        self, what: str, *, unknown: str, known: Iterable[str] = (), **details: Unpack[Details]
    ) -> None:
        self.unknown = unknown
        self.nearest: str | None = nearest_name(unknown, known)
        if self.nearest is not None and not details.get("help"):
            details["help"] = f"did you mean {self.nearest!r}?"
        super().__init__(what, **details)


class UnsupportedNodeError(BuildError, NotImplementedError):
    """A backend has no rule for a kind of node.

    Cause: the node's meaning is not available on this backend or target.
    Fix: use another backend or target, or register a rule for the node.
    """

    code = "ADKF103"


class UnsupportedConfigError(BuildError, NotImplementedError):
    """A field of ExecutionConfig has no effect here yet, so it is refused instead of ignored.

    Cause: the field needs something that is not installed or not there yet.
    Fix: install what the help line names, or leave the field at its default.

    Attributes:
        field: The field's name.
        brings: What makes it work.
    """

    code = "ADKF104"

    def __init__(self, what: str, *, field: str, brings: str, **details: Unpack[Details]) -> None:
        self.field = field
        self.brings = brings
        if not details.get("help"):
            details["help"] = f"leave {field!r} at its default; {brings} brings it"
        super().__init__(what, **details)


class LegalityError(BuildError):
    """IR that breaks a rule every pass relies on.

    Cause: IR made by hand or by a pass that is wrong: a node in two places that must be one, a
    route whose tests and branches differ in number, an edge list of the wrong length.
    Fix: correct the construction or the pass the message names.

    Attributes:
        violations: One line for each broken rule.
    """

    code = "ADKF105"

    def __init__(
        self, what: str, *, violations: Iterable[str] = (), **details: Unpack[Details]
    ) -> None:
        self.violations: tuple[str, ...] = tuple(violations)
        if self.violations and not details.get("found"):
            details["found"] = "; ".join(self.violations)
        super().__init__(what, **details)


class ContractError(BuildError):
    """The contract check found errors, so the pipeline was not run.

    Cause: a step reads what nothing wrote, types do not fit, names clash, and so on.
    Fix: each diagnostic of `report` has its own help; ``print(error.report)`` shows them all.

    Attributes:
        report: The whole ContractReport.
    """

    code = "ADKF106"

    def __init__(self, what: str, *, report: Any, **details: Unpack[Details]) -> None:
        self.report = report
        super().__init__(what, **details)


class IRFormatError(BuildError):
    """Serialised IR cannot be loaded.

    Cause: a damaged or hostile file, another format version, or a callable that the loader was
    not allowed to import.
    Fix: write the file again with this version; name callables in the loader's registry or allow
    their module prefix.
    """

    code = "ADKF107"


class TargetError(BuildError):
    """A command-line target (``module:attr`` or ``path.py:attr``) does not lead to a pipeline.

    Cause: no such file, module or attribute, an error while importing it, or an attribute that is
    no pipeline.
    Fix: name a module-level builder, IR node or ADK agent.

    Attributes:
        target: The target as given.
    """

    code = "ADKF108"

    def __init__(self, what: str, *, target: str, **details: Unpack[Details]) -> None:
        self.target = target
        super().__init__(what, **details)


class CheckerError(BuildError, RuntimeError):
    """A contract checker failed, so nothing is known about the pipeline.

    Cause: the checker raised, or gave something that is no `Diagnostic`.
    Fix: correct the checker, or upgrade the layer it comes from.

    Attributes:
        checker: Name of the checker.
        layer: Where it comes from: ``"core"``, a layer, or ``"user"``.
    """

    code = "ADKF109"

    def __init__(self, what: str, *, checker: str, layer: str, **details: Unpack[Details]) -> None:
        self.checker = checker
        self.layer = layer
        if not details.get("help"):
            upgrade = "" if layer == "user" else f", or upgrade the layer {layer!r}"
            details["help"] = f"correct the checker{upgrade}"
        super().__init__(what, **details)


class DataFileError(BuildError, OSError):
    """A file cannot be read or written; layers have kinds of it for their own files.

    Cause: it is missing, broken, of a newer version, or the disk is full.
    Fix: correct the line or field that the message names.

    Attributes:
        path: The file.
        line: The line, counted from 1; None if unknown.
        field: The field, as ``cases[3].input``; empty if unknown.
    """

    code = "ADKF110"

    def __init__(
        self,
        what: str,
        *,
        path: str,
        line: int | None = None,
        field: str = "",
        **details: Unpack[Details],
    ) -> None:
        self.path = path
        self.line = line
        self.field = field
        place = f"{path}:{line}" if line else path
        details.setdefault("location", f"{place} ({field})" if field else place)
        super().__init__(what, **details)


# --- what is installed ---------------------------------------------------------------------------


class MissingLayerError(AdkFluentError, ImportError):
    """Something from a wheel of adk-fluent that is not installed.

    Cause: a node, name, slot or config field whose layer is absent.
    Fix: install the wheel the help line names.

    Attributes:
        layer: Name of the absent layer, such as ``"middleware"``.
        distribution: The wheel that brings it.
    """

    code = "ADKF200"

    def __init__(
        self, what: str, *, layer: str, distribution: str | None = None, **details: Unpack[Details]
    ) -> None:
        self.layer = layer
        self.distribution: str = distribution or f"adk-fluent-{layer}"
        if not details.get("help"):
            details["help"] = f"pip install {self.distribution}"
        super().__init__(what, **details)
        _place_at_caller(self)


class LayerError(AdkFluentError, ImportError):
    """An installed layer is broken.

    Cause: its entry point cannot be imported, is no `Layer`, or names something that does not
    exist; or it and another layer, or core, have the same name or provide something of one name.
    Fix: reinstall or upgrade the distribution the message names, or report it to its authors.

    Attributes:
        layer: The layer's name, as far as it is known.
        distribution: The distribution that ships it.
        version: That distribution's version.
    """

    code = "ADKF201"

    def __init__(
        self,
        what: str,
        *,
        layer: str,
        distribution: str = "an unknown distribution",
        version: str = "",
        **details: Unpack[Details],
    ) -> None:
        self.layer = layer
        self.distribution = distribution
        self.version = version
        if not details.get("location"):
            details["location"] = f"layer {layer!r} of {distribution} {version}".rstrip()
        if not details.get("help"):
            details["help"] = "reinstall or upgrade it together with adk-fluent-core"
        super().__init__(what, **details)


class LegacyPackageError(AdkFluentError, ImportError):
    """The old distribution ``adk-fluent`` has overwritten files of adk-fluent-core.

    Cause: both are installed in one environment and share the import name ``adk_fluent``.
    Fix: ``pip uninstall adk-fluent && pip install --force-reinstall adk-fluent-core``.
    """

    code = "ADKF202"


# --- while a pipeline runs -----------------------------------------------------------------------


class RunError(AdkFluentError, RuntimeError):
    """Something went wrong while a pipeline ran.

    Cause: see the subclass. Fix: follow the message's help line.
    """

    code = "ADKF300"


class StepTimeoutError(RunError, TimeoutError):
    """A step, or the whole run, took longer than it may.

    Cause: the seconds of `timeout(...)` or of ``ExecutionConfig.timeout_seconds`` passed.
    Fix: allow more time, or find out what was slow: every event has a timestamp.

    Attributes:
        seconds: What was allowed.
    """

    code = "ADKF301"

    def __init__(self, what: str, *, seconds: float, **details: Unpack[Details]) -> None:
        self.seconds = seconds
        super().__init__(what, **details)


class ExpectationError(RunError, AssertionError):
    """The predicate of an `expect` step did not hold.

    Cause: state was not what the step expects.
    Fix: correct the step that writes that state, or the expectation.
    """

    code = "ADKF302"


class OutputMissingError(RunError, LookupError):
    """A step did not write a key that it declares.

    Cause: an agent gave no answer, it reported an error instead, no tool wrote the key, or a
    function returned no value for it.
    Fix: make the step write it, or remove the declaration from `.writes(...)` or `@effects(...)`.

    Attributes:
        keys: The declared keys that are missing.
    """

    code = "ADKF303"

    def __init__(self, what: str, *, keys: Iterable[str] = (), **details: Unpack[Details]) -> None:
        self.keys: tuple[str, ...] = tuple(keys)
        super().__init__(what, **details)


class OutputInvalidError(RunError, ValueError):
    """An answer does not fit the schema the agent declares.

    Cause: the model replied with something else than the declared fields and types.
    Fix: state the shape in the instruction, loosen the schema, or use a model with JSON mode.

    Attributes:
        fields: The fields that do not fit, as dotted paths.
    """

    code = "ADKF304"

    def __init__(
        self, what: str, *, fields: Iterable[str] = (), **details: Unpack[Details]
    ) -> None:
        self.fields: tuple[str, ...] = tuple(fields)
        super().__init__(what, **details)


class AgentReportedError(RunError):
    """An agent reported an error in an event instead of raising one.

    Cause: the model refused, was cut off or was blocked; ADK gives that as an event with an
    error code. Raised where every attempt failed, and by `ask` and `map` without an answer.
    Fix: look at `error_code`; a fallback (``a // b``) handles it like an exception.

    Attributes:
        error_code: The code of the event, such as ``"SAFETY"``.
        error_message: Its message.
    """

    code = "ADKF305"

    def __init__(
        self, what: str, *, error_code: str, error_message: str = "", **details: Unpack[Details]
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        super().__init__(what, **details)


class RemoteError(RunError, ConnectionError):
    """A remote agent failed or could not be reached.

    Cause: the endpoint is down, refused the task, or the task failed there.
    Fix: check the endpoint and its log; give the node a fallback or a retry.

    Attributes:
        endpoint: The agent's address without credentials.
        error_code: The kind of the failure, such as ``"A2A_CONNECT"``; empty if unknown.
        retriable: Whether sending the task again may help; `protocol.classify` reads it.
        status: The HTTP status that was answered, if that was the failure.
    """

    code = "ADKF306"

    def __init__(
        self,
        what: str,
        *,
        endpoint: str = "",
        error_code: str = "",
        retriable: bool = True,
        status: int | None = None,
        **details: Unpack[Details],
    ) -> None:
        self.endpoint = endpoint
        self.error_code = error_code
        self.retriable = retriable
        self.status = status
        super().__init__(what, **details)


class CredentialsError(RunError):
    """A model or service has no credentials to work with.

    Cause: no API key and no other way of signing in was found.
    Fix: set the environment variable the help line names, or run offline.
    """

    code = "ADKF307"


class SessionError(RunError, LookupError):
    """A session does not exist, or is not in the state the call needs.

    Cause: a wrong app name, user or session id, an answer to a question nobody asked, or a run
    that is still going on.
    Fix: use the ids that `RunResult` carries.

    Attributes:
        taken_by: Who goes on with the run in the place of the one that raised this, or has written
            to its session: ``host/process id/when it was started/...``, or words; else ``""``.
    """

    code = "ADKF308"
    taken_by: str = ""


class SessionStoreError(RunError, OSError):
    """Where sessions are kept cannot be read or written.

    Cause: a damaged or foreign database file, no permission, or no space.
    Fix: move the file away and start anew, or restore it from a backup.
    """

    code = "ADKF309"


class PlanChangedError(RunError):
    """A pipeline was changed while a run of it waited or was cut off.

    Cause: its steps are others, or arranged in another way, than those of the run that is to go on.
    Fix: finish the run with the version that began it, or take it back with `.rewind(...)`.
    """

    code = "ADKF310"


class UnstorableValueError(RunError, ValueError):
    """A step put out what the session it runs in cannot keep.

    Cause: a value that JSON does not hold, or nothing can read back, on its way to state or into an
    event: a set, a date, an object, not-a-number, half a character, a list that contains itself,
    or text with NUL on its way to state.
    Fix: write what the help line names; live objects are handed over by `.inject(...)`.

    Attributes:
        key: The state key; None if it is not for state.
        path: Where in it the value is, such as ``state['orders'][0]``.
    """

    code = "ADKF311"

    def __init__(
        self, what: str, *, key: str | None = None, path: str = "", **details: Unpack[Details]
    ) -> None:
        self.key = key
        self.path = path
        super().__init__(what, **details)


class StateKeyError(RunError, LookupError):
    """State has no value where one is needed.

    Cause: nothing has written the key yet, or something wrote one that looks like it.
    Fix: write it earlier, give it a default, or start the session with it.

    Attributes:
        key: The key, with its scope prefix.
    """

    code = "ADKF312"

    def __init__(self, what: str, *, key: str, **details: Unpack[Details]) -> None:
        self.key = key
        super().__init__(what, **details)


class StateTypeError(RunError, TypeError):
    """State holds, or was given, what its schema does not allow.

    Cause: a value of another type, a value outside its limits, or a key that is not declared.
    Fix: write what the schema declares, or change the schema.

    Attributes:
        key: The key, with its scope prefix.
    """

    code = "ADKF313"

    def __init__(self, what: str, *, key: str, **details: Unpack[Details]) -> None:
        self.key = key
        super().__init__(what, **details)


class ModelRetry(RunError):  # noqa: N818  # as pydantic-ai calls it: no fault, unless it recurs
    """A tool tells its model what was wrong with a call, so that the model can try again.

    Cause: raised by a tool of yours; the model gets the text as the tool's response, and the run
    goes on. When it was told so `at_most` times in a row, the next one ends the run: `RunError`.
    Fix: look at what the model calls the tool with; say in its docstring what it takes.

    Args:
        what: What the model is told.
        at_most: How often in a row the model is told, without a result of the tool between.

    Attributes:
        at_most: The same.
    """

    code = "ADKF314"

    def __init__(self, what: str, *, at_most: int = 3, **details: Unpack[Details]) -> None:
        """Make one.

        Raises:
            UsageError: `at_most` is no number of times.
            UnknownNameError: It takes no such argument.
        """
        for name in details.keys() - _DETAILS:
            raise UnknownNameError(
                f"ModelRetry takes no {name!r}", unknown=name, known=("at_most", *sorted(_DETAILS))
            )
        if type(at_most) is not int or at_most < 0:
            raise UsageError(
                "ModelRetry(..., at_most=) is an int of 0 or more", found=repr(at_most)
            )
        self.at_most = at_most
        super().__init__(what, **details)


# --- helpers -------------------------------------------------------------------------------------


def add_place(error: _E, node: Placed) -> _E:
    """Say on an error where it happened, innermost place first; its type stays.

    An error of ours that names no node yet gets the node; every other error gets a note.

    Returns:
        The same error.
    """
    if isinstance(error, AdkFluentError):
        if error.node is None:
            error.node, error.location = node.name, error.location or node.location
        if error.node == node.name:
            return error
    location = f" at {node.location}" if node.location else ""
    note = f"in node {node.name!r}{location}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error


class ErrorParts(TypedDict):
    """What an error says, as text; what it does not say is empty.

    Attributes:
        type: Its type's name.
        code: Its code, where it is one of ours.
        message: What happened, with what was found, and with notes that are neither place nor help.
        node: The innermost node that it is placed at.
        location: The source line of that node.
        help: What to do.
    """

    type: str
    code: str
    message: str
    node: str
    location: str
    help: str


def error_parts(error: BaseException) -> ErrorParts:
    """The parts of an error as it crosses to where its type is not known.

    The place and the help of an error that is not ours are those of its notes.
    """
    message, node, location, help = str(error), "", "", ""
    if isinstance(error, AdkFluentError):
        message = f"{error.what}: {error.found}" if error.found else error.what
        node, location = error.node or "", str(error.location or "")
        help = error.help or ""
    rest = [message]
    for note in getattr(error, "__notes__", ()):
        place = _PLACE.fullmatch(str(note))
        if place is not None:
            if not node:
                node, location = place[1], place[2] or ""
            continue
        said, _, advice = f"\n{note}".partition("\nhelp:" if note[:5] == "help:" else "\n  help:")
        help = help or advice.strip()
        rest += [said.strip()] if said.strip() else []
    code = error.code if isinstance(error, AdkFluentError) else ""
    return ErrorParts(
        type=type(error).__name__,
        code=code,
        message="\n".join(rest),
        node=node,
        location=location,
        help=help,
    )


def unwrap(error: BaseException) -> BaseException:
    """The error that was raised, where ADK has wrapped it.

    ADK's plugin manager turns what a plugin raises into
    ``RuntimeError("Error in plugin ...") from the_error``.
    """
    while (
        type(error) is RuntimeError
        and error.__cause__ is not None
        and str(error).startswith("Error in plugin ")
    ):
        error = error.__cause__
    return error
