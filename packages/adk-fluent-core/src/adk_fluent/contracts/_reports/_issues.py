"""The findings of core, in the order of their codes."""

from __future__ import annotations

from adk_fluent.contracts._reports._diagnostic import Diagnostic, Severity

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


# --- state ---------------------------------------------------------------------------------------


class ReadBeforeWrite(Diagnostic, code="FLW001", severity=_ERROR, doubtful=True):
    """A state key is read that nothing has given a value."""


class MaybeUndefined(Diagnostic, code="FLW002", severity=_WARNING, doubtful=True):
    """A state key is read that has a value on some ways to the reader only."""


class TypeMismatch(Diagnostic, code="FLW003", severity=_ERROR, doubtful=True):
    """A state key is read as another type than it is written as."""


class ReadRace(Diagnostic, code="FLW004", severity=_ERROR, doubtful=True):
    """A state key is read while something beside the reader writes it."""


class ScopeMismatch(Diagnostic, code="FLW005", severity=_ERROR, doubtful=True):
    """A state key is read in one scope and written in another."""


class ExternalState(Diagnostic, code="FLW006", severity=_INFO, doubtful=True):
    """A key of the user or the app is read that an earlier session must have written."""


class WriteRace(Diagnostic, code="FLW007", severity=_WARNING):
    """Parallel branches write the same state key, so that values are lost."""


class DeadState(Diagnostic, code="FLW008", severity=_INFO):
    """A state key is written that nothing reads."""


class SchemaViolation(Diagnostic, code="FLW009", severity=_ERROR, doubtful=True):
    """State is used in a way that its schema does not allow."""


# --- names ---------------------------------------------------------------------------------------


class InvalidName(Diagnostic, code="FLW101", severity=_ERROR):
    """A name that ADK refuses or keeps for itself."""


class DuplicateName(Diagnostic, code="FLW102", severity=_ERROR):
    """Two different agents have the same name."""


# --- structure -----------------------------------------------------------------------------------


class EmptyComposite(Diagnostic, code="FLW103", severity=_ERROR):
    """An arrangement of steps that has none."""


class SingleAlternative(Diagnostic, code="FLW104", severity=_WARNING):
    """A choice between alternatives that has only one."""


class MisplacedNode(Diagnostic, code="FLW105", severity=_ERROR):
    """A node that has no meaning where it stands."""


class InvalidValue(Diagnostic, code="FLW106", severity=_ERROR):
    """A field holds a value that has no meaning."""


class IllegalNode(Diagnostic, code="FLW107", severity=_ERROR):
    """A node that breaks a rule of the IR."""


class LoopWithoutExit(Diagnostic, code="FLW111", severity=_INFO):
    """A loop that always runs the default number of iterations."""


class RouteWithoutDefault(Diagnostic, code="FLW112", severity=_INFO):
    """A route that does nothing when no test holds."""


class UnreachableBranch(Diagnostic, code="FLW113", severity=_WARNING):
    """A branch that can never run: an earlier test takes all of its cases, or it has none."""


class ShadowedKey(Diagnostic, code="FLW114", severity=_WARNING):
    """A map uses one state key for two things."""


class ConflictingReducers(Diagnostic, code="FLW115", severity=_ERROR):
    """Two different reducers are declared for one state key."""


class MisspeltKey(Diagnostic, code="FLW116", severity=_WARNING):
    """A state key has a prefix that is no scope, or is no name that a placeholder can have."""


# --- transfers -----------------------------------------------------------------------------------


class UnknownTransferTarget(Diagnostic, code="FLW121", severity=_ERROR):
    """A transfer to a name that nothing in the pipeline has."""


class AmbiguousTransferTarget(Diagnostic, code="FLW122", severity=_ERROR):
    """A transfer to a name that several different nodes have."""


class TransferCycle(Diagnostic, code="FLW123", severity=_ERROR):
    """A transfer that leads back to itself."""


# --- attempts that may be discarded --------------------------------------------------------------


class GateInRace(Diagnostic, code="FLW131", severity=_ERROR):
    """A person is asked inside a race."""


class IrreversibleWrite(Diagnostic, code="FLW132", severity=_WARNING):
    """An attempt that may be discarded writes state that outlives the session."""


class DuplicateGate(Diagnostic, code="FLW133", severity=_WARNING):
    """Two gates of one run have the same name, or write the same key."""


# --- agents --------------------------------------------------------------------------------------


class DuplicateTool(Diagnostic, code="FLW141", severity=_ERROR):
    """Two tools of one agent have the same name."""


class InertPlaceholder(Diagnostic, code="FLW142", severity=_INFO):
    """Text that looks like a placeholder and reaches the model as it stands."""


class UnreadableAnswer(Diagnostic, code="FLW143", severity=_ERROR):
    """An agent's answer cannot be read into the keys that the agent writes."""


class UntellableParameter(Diagnostic, code="FLW144", severity=_ERROR):
    """A tool has a parameter that no model can be told of."""


# --- the application -----------------------------------------------------------------------------


class DuplicateResource(Diagnostic, code="FLW151", severity=_ERROR):
    """Two different resources have the same name."""


class DuplicateMiddleware(Diagnostic, code="FLW152", severity=_WARNING):
    """One middleware object stands twice in a stack."""


class UnusableMiddleware(Diagnostic, code="FLW153", severity=_ERROR):
    """A middleware that is given by name cannot be made."""


# --- functions over state ------------------------------------------------------------------------


class UncallableFunction(Diagnostic, code="FLW161", severity=_ERROR):
    """A function that a run cannot call with what it has."""


# --- streaming between steps ---------------------------------------------------------------------


class StreamingRouteConflict(Diagnostic, code="FLW201", severity=_ERROR):
    """A step that needs a complete output stands behind an edge that streams it."""


class UnfinishedRead(Diagnostic, code="FLW202", severity=_ERROR):
    """An agent begins with a stream, and reads a key that is written at the end of it."""


class HeldStream(Diagnostic, code="FLW203", severity=_WARNING):
    """An edge that streams out of something that hands on nothing before it is done."""


class DiscardedStream(Diagnostic, code="FLW204", severity=_WARNING):
    """A step begins with what an attempt says that may be discarded."""


class StructuredStream(Diagnostic, code="FLW205", severity=_WARNING):
    """Data of a schema is handed on in pieces."""


class UnseenStream(Diagnostic, code="FLW206", severity=_WARNING):
    """An edge streams to an agent that does not look at the conversation."""


class InertEdge(Diagnostic, code="FLW207", severity=_WARNING):
    """A setting of an edge that nothing comes of."""


class LiveEdge(Diagnostic, code="FLW208", severity=_WARNING):
    """An edge streams in a live run, where steps do not overlap."""


# --- content -------------------------------------------------------------------------------------


class ModalityMismatch(Diagnostic, code="FLW301", severity=_ERROR):
    """Content that arrives where it is not taken, or does not arrive at all."""


class UnsupportedModality(Diagnostic, code="FLW302", severity=_WARNING):
    """An agent declares a kind of content that its model does not take, or does not give."""


class UnrequestedModality(Diagnostic, code="FLW303", severity=_WARNING):
    """An agent declares a kind of content that its model gives when asked for, and is not asked."""


class MissingOutputSchema(Diagnostic, code="FLW304", severity=_WARNING):
    """An agent declares structured data, and no schema of it."""


class OversizedContent(Diagnostic, code="FLW305", severity=_WARNING):
    """More tokens are declared than there is room for."""


# --- the check itself ----------------------------------------------------------------------------


class LayerAbsent(Diagnostic, code="FLW901", severity=_ERROR):
    """A layer of which the pipeline has parts, or that checks it, is not installed or broken."""
