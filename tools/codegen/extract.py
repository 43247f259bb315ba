"""Describe the fields of the ADK models that users set through us, as JSON.

Run it with the Python of any environment that has google-adk; it needs nothing else of ours::

    python tools/codegen/extract.py > tools/codegen/adk/2.13.0.json

Types and docstrings come from ADK's source, not from pydantic: at run time an alias such as
``BeforeModelCallback`` is an expansion of 300 characters that differs between versions, and
pydantic does not keep the docstrings of attributes. What is written stays comparable between
versions of ADK and of Python: ``Optional[X]`` and ``Union[X, None]`` are both ``X | None``.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import json
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

#: Spellings of `typing` that have a newer one.
_BUILTINS: Final = {"List": "list", "Dict": "dict", "Tuple": "tuple", "Set": "set", "Type": "type"}


class _Normal(ast.NodeTransformer):
    """One spelling for each type."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Write unions with bars; what a Literal lists stays as it is."""
        name = node.value.id if isinstance(node.value, ast.Name) else None
        if name == "Literal":
            return node
        node.value, node.slice = self.visit(node.value), self.visit(node.slice)
        if name == "Optional":
            return _union([node.slice, ast.Constant(None)])
        if name == "Union":
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return _union(parts)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Put None last."""
        return _union([self.visit(node.left), self.visit(node.right)])

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """``List`` is ``list``; a name imported as private is still that name."""
        return ast.Name(_BUILTINS.get(node.id, node.id.lstrip("_")))

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """A type in quotes is a type."""
        if isinstance(node.value, str):
            return self.visit(ast.parse(node.value, mode="eval").body)
        return node


def _union(parts: list[ast.expr]) -> ast.expr:
    flat = [operand for part in parts for operand in _operands(part)]
    ordered = [each for each in flat if not _is_none(each)]
    if len(ordered) < len(flat):
        ordered.append(ast.Constant(None))
    return functools.reduce(lambda left, right: ast.BinOp(left, ast.BitOr(), right), ordered)


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from _operands(node.left)
        yield from _operands(node.right)
    else:
        yield node


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def normal_type(annotation: ast.expr) -> str:
    """The one way in which a type is written."""
    return ast.unparse(_Normal().visit(annotation))


def declared(cls: type) -> dict[str, tuple[str, str]]:
    """Type and docstring of each attribute that a class itself declares, from its source."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    body: list[ast.stmt] = tree.body if isinstance(tree, ast.ClassDef) else []
    found: dict[str, tuple[str, str]] = {}
    for at, statement in enumerate(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found[statement.target.id] = normal_type(statement.annotation), _doc(body[at + 1 :])
    return found


def _doc(after: list[ast.stmt]) -> str:
    match after:
        case [ast.Expr(ast.Constant(str() as text)), *_]:
            return inspect.cleandoc(text)
        case _:
            return ""


def _default(info: FieldInfo) -> dict[str, str]:
    """What a field holds when it is not set."""
    if info.default_factory is not None:
        return {"kind": "factory", "of": info.default_factory.__name__}
    if info.default is PydanticUndefined:
        return {"kind": "required"}
    return _value(info.default)


def _value(value: object) -> dict[str, str]:
    text = str(value) if isinstance(value, enum.Enum) else repr(value)
    return {"kind": "value", "of": text}


def describe(cls: type[BaseModel]) -> dict[str, Any]:
    """The fields of a model in order, then parameters that only its own `__init__` has."""
    sources = [(base, declared(base)) for base in cls.__mro__ if _is_model(base)]
    fields: list[dict[str, Any]] = []
    for name, info in cls.model_fields.items():
        base, found = next((base, found) for base, found in sources if name in found)
        type_, doc = found[name]
        fields.append(
            _field(name, type_, _default(info), base.__name__, doc or info.description or "")
        )
    fields.extend(_parameters(cls))
    return {"module": cls.__module__, "fields": fields}


def _is_model(base: type) -> bool:
    return issubclass(base, BaseModel) and base is not BaseModel


def _parameters(cls: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Where a class writes `__init__` itself, its fields are not all that it takes."""
    if cls.__init__ is BaseModel.__init__:
        return
    for name, parameter in inspect.signature(cls.__init__).parameters.items():
        named = parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if not named or name == "self" or name in cls.model_fields:
            continue
        written = parameter.annotation
        source = written if isinstance(written, str) else inspect.formatannotation(written)
        type_ = normal_type(ast.parse(source, mode="eval").body)
        required = parameter.default is parameter.empty
        default = {"kind": "required"} if required else _value(parameter.default)
        yield _field(name, type_, default, "__init__", "")


def _field(
    name: str, type_: str, default: dict[str, str], defined_in: str, doc: str
) -> dict[str, Any]:
    """What is kept of a field: of its docstring the first paragraph, and whether it is to go."""
    return {
        "name": name,
        "type": type_,
        "default": default,
        "deprecated": "DEPRECATED" in doc,
        "defined_in": defined_in,
        "doc": " ".join(doc.partition("\n\n")[0].split()),
    }


def extract() -> dict[str, Any]:
    """Describe the installed ADK."""
    from google.adk.agents.llm_agent import LlmAgent  # noqa: PLC0415  # tests need the rest only
    from google.adk.agents.run_config import RunConfig  # noqa: PLC0415
    from google.adk.apps.app import App  # noqa: PLC0415
    from google.adk.version import __version__  # noqa: PLC0415

    classes = (LlmAgent, RunConfig, App)
    return {"adk": __version__, "classes": {cls.__name__: describe(cls) for cls in classes}}


if __name__ == "__main__":
    json.dump(extract(), sys.stdout, indent=2)
    print()
