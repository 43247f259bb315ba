"""How functions are called and classes are made."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

import griffe

from docs.sources import target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from docs.names import Names

_KINDS: Final = griffe.ParameterKind
_RECORDS: Final = {"node", "record"}  # decorators of ours that make fields parameters


def calls(name: str, thing: griffe.Object, names: Names) -> list[str]:
    """The signatures of something: one for each overload; its name if it cannot be called.

    Args:
        name: What it is called.
        thing: A function, a class or anything else.
        names: What names stand for.
    """
    if isinstance(thing, griffe.Function):
        return [
            _signature(name, each.parameters, each.returns, names)
            for each in thing.overloads or [thing]
        ]
    if not isinstance(thing, griffe.Class):
        return [name]
    init = thing.all_members.get("__init__")
    if init is not None:
        made = target(init)
        overloads = made.overloads if isinstance(made, griffe.Function) else None
        parameters = [each.parameters for each in overloads or ()] or [thing.parameters]
        return [_signature(name, each, None, names) for each in parameters]
    if decorators(thing) & _RECORDS:
        return [_signature(name, _fields(thing), None, names)]
    return [
        _signature(name, thing.parameters, None, names) if "dataclass" in thing.labels else name
    ]


def decorators(cls: griffe.Class) -> set[str]:
    """The names of a class's decorators."""
    return {str(each.value).partition("(")[0].rpartition(".")[2] for each in cls.decorators}


def _signature(
    name: str,
    parameters: Iterable[griffe.Parameter],
    returns: str | griffe.Expr | None,
    names: Names,
) -> str:
    parts: list[str] = []
    before: griffe.ParameterKind | None = None
    for each in parameters:
        if each.name in {"self", "cls"} and before is None:
            continue
        if before is _KINDS.positional_only and each.kind is not before:
            parts.append("/")
        if each.kind is _KINDS.keyword_only and before not in {each.kind, _KINDS.var_positional}:
            parts.append("*")
        parts.append(_parameter(each, names))
        before = each.kind
    if before is _KINDS.positional_only:
        parts.append("/")
    arrow = f" -> {names.type(returns)}" if returns is not None else ""
    head = f"{name}({', '.join(parts)}){arrow}"
    try:
        ast.parse(f"def {head}: ...")
    except SyntaxError:  # Sphinx would show it without links, and say nothing
        names.problems.append(f"no signature: {head}")
    return head


def _parameter(each: griffe.Parameter, names: Names) -> str:
    stars = {_KINDS.var_positional: "*", _KINDS.var_keyword: "**"}
    mark = stars.get(each.kind, "") if each.kind is not None else ""
    text = f"{mark}{each.name}"
    if each.annotation is not None:
        text += f": {names.type(each.annotation)}"
    return text if each.default is None or mark else f"{text} = {each.default}"


def _fields(cls: griffe.Class) -> list[griffe.Parameter]:
    """The parameters of a record: its annotated fields, those of its bases first."""
    found: dict[str, griffe.Parameter] = {}
    for each in reversed((cls, *cls.mro())):
        for name, member in each.members.items():
            if not isinstance(member, griffe.Attribute) or member.annotation is None:
                continue
            if "instance-attribute" in member.labels:  # no ClassVar, no property
                found[name] = _field(member)
    return sorted(found.values(), key=lambda each: each.kind is _KINDS.keyword_only)


def _field(member: griffe.Attribute) -> griffe.Parameter:
    default, kind = member.value, _KINDS.positional_or_keyword
    if isinstance(default, griffe.ExprCall) and str(default.function) in {"child", "field"}:
        given = {
            part.name: part.value
            for part in default.arguments
            if isinstance(part, griffe.ExprKeyword)
        }
        if str(given.get("kw_only")) == "True":
            kind = _KINDS.keyword_only
        default = given.get("default")
    shown = None if default is None else str(default)
    return griffe.Parameter(member.name, annotation=member.annotation, kind=kind, default=shown)
