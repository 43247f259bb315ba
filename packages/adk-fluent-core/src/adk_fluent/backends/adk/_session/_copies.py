"""Copies of contexts and sessions, which steps are given with something changed in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")


def copied(model: M, changes: Mapping[str, object]) -> M:
    """A copy with some values changed, as `model_copy(update=changes)` makes it, at less cost.

    Args:
        model: A context or session.
        changes: Values by name; of what is no field, what we keep in a context.
    """
    kind = type(model)
    made = kind.__new__(kind)
    private, extra = model.__pydantic_private__, model.__pydantic_extra__
    put = object.__setattr__  # pydantic's own would look for a field of that name
    put(made, "__dict__", {**vars(model), **changes})
    put(made, "__pydantic_extra__", None if extra is None else extra.copy())
    put(made, "__pydantic_fields_set__", model.__pydantic_fields_set__.union(changes))
    put(made, "__pydantic_private__", None if private is None else private.copy())
    return made
