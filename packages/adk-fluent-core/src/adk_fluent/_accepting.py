"""Whether a value, as state holds it, is one of a type: asked of constants, and of inputs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def accepts(kind: Any, value: object) -> bool | None:
    """Whether a value is one of a type, as state schemas read it; None if nobody can say."""
    if kind is None or value.__class__ is kind:
        return True
    try:
        adapter = _adapter(kind)
    except TypeError:  # a type that has no hash
        adapter = _adapter.__wrapped__(kind)
    if adapter is None:
        return None
    from json import dumps  # noqa: PLC0415  # only such values need it

    from pydantic import ValidationError  # noqa: PLC0415  # loaded by now

    try:
        adapter.validate_json(dumps(value, allow_nan=False), strict=True)
    except ValidationError:
        return False
    except Exception:  # noqa: BLE001  # no JSON, or a validator that fails as it pleases
        return None
    return True


@lru_cache(maxsize=256)
def _adapter(kind: Any) -> TypeAdapter[Any] | None:
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter  # noqa: PLC0415  # slow

    try:
        try:
            return TypeAdapter(kind, config=ConfigDict(val_json_bytes="base64"))
        except PydanticUserError as error:
            if error.code != "type-adapter-config-unused":
                raise
            return TypeAdapter(kind)  # a model has settings of its own
    except Exception:  # noqa: BLE001  # nothing that pydantic knows, or it cannot be resolved
        return None
