"""Setters of what an agent takes, gives and may run on: data that checks and layers work with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_type_hints

from adk_fluent._arguments import one_of
from adk_fluent._words import describe
from adk_fluent.builders._candidates import as_candidates
from adk_fluent.builders._keys import as_written, merged
from adk_fluent.builders._models import as_model
from adk_fluent.builders._operands import some
from adk_fluent.builders._settings import as_schema
from adk_fluent.builders._transform_args import as_function
from adk_fluent.errors import UsageError
from adk_fluent.ir import (
    STRATEGIES,
    ContentSpec,
    Location,
    Modality,
    ModelCandidate,
    ModelSelectorNode,
    Ref,
    StateFieldRef,
    Strategy,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Self, TypeAlias

    from adk_fluent.builders._types import ModelLike, Schema
    from adk_fluent.protocol import ModelReply

    JudgeSays: TypeAlias = bool | float


_CONTENT: Final = (
    *("input_modalities", "output_modalities"),
    *("max_input_tokens", "max_output_tokens"),
)
_BUDGET_KEY: Final = ".model_select(budget_key=...)"


class Capabilities:
    """The part of `Agent` that says what an agent is able to do."""

    __slots__ = ()

    _fields: Any

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        def _changed(self) -> Self: ...

    def produces(self, schema: Schema) -> Self:
        """Answer with data of this type, and write each of its fields to the key of its name.

        Args:
            schema: A class with annotated fields, mostly a pydantic model.
        """
        ref = as_schema(schema, ".produces(...)")
        fields = self._fields
        fields["produces_type"] = ref
        fields.setdefault("output_schema", ref)
        fields["writes_keys"] = merged(fields.get("writes_keys", ()), _keys_of(ref, ".produces"))
        return self._changed()

    def consumes(self, schema: Schema) -> Self:
        """Declare that it reads the state keys called like the fields of this type.

        Args:
            schema: A class with annotated fields, mostly a pydantic model.
        """
        ref = as_schema(schema, ".consumes(...)")
        fields = self._fields
        fields["consumes_type"] = ref
        fields["reads_keys"] = merged(fields.get("reads_keys", ()), _keys_of(ref, ".consumes"))
        return self._changed()

    def accepts(self, *modalities: Modality, max_tokens: int | None = None) -> Self:
        """Declare the kinds of content it takes; without this, text.

        Args:
            *modalities: Such as ``Modality.IMAGE``.
            max_tokens: The largest prompt, in tokens.
        """
        kinds = _modalities(modalities, ".accepts(...)")
        limit = _tokens(max_tokens, ".accepts(max_tokens=...)")
        return self._contains(input_modalities=kinds, max_input_tokens=limit)

    def produces_modality(self, *modalities: Modality, max_tokens: int | None = None) -> Self:
        """Declare the kinds of content it gives; without this, text.

        Args:
            *modalities: Such as ``Modality.STRUCTURED``.
            max_tokens: The largest answer, in tokens.
        """
        kinds = _modalities(modalities, ".produces_modality(...)")
        limit = _tokens(max_tokens, ".produces_modality(max_tokens=...)")
        return self._contains(output_modalities=kinds, max_output_tokens=limit)

    def model_select(
        self,
        *,
        strategy: Strategy = "cost_optimized",
        candidates: Iterable[ModelCandidate],
        budget_key: str | None = None,
        fallback_model: ModelLike | None = None,
        judge: Callable[[ModelReply], JudgeSays | Awaitable[JudgeSays]] | None = None,
    ) -> Self:
        """Choose the model at run time, from several, instead of its own; needs the layer ``cost``.

        Agents below it that name no model still have its own one, where it has one.

        Args:
            strategy: ``cost_optimized`` takes the one whose call is the cheapest, of those whose
                condition holds, ``quality_optimized`` the best, ``budget_bounded`` the cheapest
                until a budget refuses that, ``adaptive`` begins cheap, and asks a better one if the
                judge rejects the answer.
            candidates: The models.
            budget_key: State key that mirrors what is left of the budget, in USD.
            fallback_model: Asked when a budget refuses the one that was chosen, or no condition
                holds: a name, or an instance of ADK's BaseLlm.
            judge: Of ``adaptive``: given a `ModelReply`, says whether it will do, or how good it
                is, from 0 to 1; from 0.5 on it will do. It may be async.

        Raises:
            UsageError: Something of it has no meaning, or a price is off by a factor of 1 000.
            UnknownNameError: There is no such strategy.
        """
        models = as_candidates(candidates)
        chosen = one_of(strategy, STRATEGIES, "strategy")
        fallback = fallback_model
        if fallback is not None:
            fallback = as_model(fallback, ".model_select(fallback_model=...)")
        if chosen == "budget_bounded" and fallback is None:
            raise UsageError(
                '.model_select(strategy="budget_bounded") needs a fallback_model',
                help='fallback_model="gemini-2.5-flash-lite", asked once money is short',
            )
        if (chosen == "adaptive") != (judge is not None):
            raise UsageError(
                '.model_select(judge=...) is for strategy="adaptive", which needs one',
                found=f"strategy={chosen!r} {'without' if judge is None else 'with'} a judge",
                help="judge=lambda reply: len(reply.text) > 20",
            )
        self._fields["selector"] = ModelSelectorNode(
            f"{self.name}_model",
            chosen,
            models,
            None if budget_key is None else as_written(budget_key, _BUDGET_KEY).key,
            fallback,
            None if judge is None else as_function(judge, ".model_select(judge=...)"),
            location=Location.caller(),
        )
        return self._changed()

    def _contains(self, **changes: Any) -> Self:
        known = self._fields.get("content", ContentSpec())
        values = {name: getattr(known, name) for name in _CONTENT}
        self._fields["content"] = ContentSpec(**{**values, **changes})
        return self._changed()


def _tokens(limit: object, role: str) -> int | None:
    if limit is None:
        return None
    if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0:
        return limit
    raise UsageError(
        f"{role} takes a number of tokens, 1 or more",
        found=repr(limit),
    )


def _modalities(values: tuple[Modality, ...], role: str) -> frozenset[Modality]:
    for each in some(values, role, "a Modality"):
        if not isinstance(each, Modality):  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's
            raise UsageError(
                f"{role} takes Modalities",
                found=describe(each),
                help=f"one of {', '.join(map(repr, Modality))}",
            )
    return frozenset(values)


def _keys_of(schema: Ref, role: str) -> tuple[StateFieldRef, ...]:
    """The fields of a type as state keys."""
    value: Any = schema.value
    fields: dict[str, Any] | None = getattr(value, "model_fields", None)  # pydantic's
    if fields is None:
        types = _hints(value)
    else:
        types = {name: field.annotation for name, field in fields.items()}
    if not types:
        raise UsageError(
            f"{role}(...) takes a type with annotated fields",
            found=describe(schema.value),
            help="a pydantic model, a dataclass or a TypedDict",
        )
    return tuple(StateFieldRef(name, kind) for name, kind in types.items())


def _hints(value: Any) -> dict[str, Any]:
    try:
        return get_type_hints(value)
    except (TypeError, NameError):
        return {}
