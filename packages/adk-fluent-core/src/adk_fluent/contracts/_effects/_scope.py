"""Whose names are whose in a function: what it binds, and what functions inside it share."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A function, or what Python runs as one.
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES: Final = (*_FUNCTIONS, ast.GeneratorExp, ast.ClassDef)


class Scope:
    """The names of a function.

    Attributes:
        bound: How often each name is bound in it, parameters included.
        shared: Names that functions inside it use, and which are not their own.
        moved: Names that others bind as well: declared global or nonlocal, here or inside.
        yields: Whether it is a generator.
    """

    __slots__ = ("bound", "moved", "shared", "yields")

    def __init__(self, function: ast.AST) -> None:
        self.bound: Counter[str] = Counter(_parameters(function))
        self.moved: set[str] = set()
        self.shared: set[str] = set()
        self.yields: bool = False
        outside: set[str] = set()
        for node in _own(function):
            self.bound.update(_bound_by(node))
            if isinstance(node, ast.Global | ast.Nonlocal):
                outside.update(node.names)
            elif isinstance(node, ast.Yield | ast.YieldFrom):
                self.yields = True
            if isinstance(node, _SCOPES):
                free, moved = _free(node)
                self.shared |= free
                self.moved |= moved
        for name in outside:
            del self.bound[name]
        self.moved |= outside


def _free(function: ast.AST) -> tuple[set[str], set[str]]:
    """The names that a scope uses and does not bind, and those that it binds for others."""
    used, moved = set[str](), set[str]()
    own = set[str]() if isinstance(function, ast.ClassDef) else set(_parameters(function))
    for node in _own(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            moved.update(node.names)
        elif isinstance(node, ast.Name):
            used.add(node.id)
        if isinstance(node, _SCOPES):
            free, others = _free(node)
            used |= free
            moved |= others
        if not isinstance(function, ast.ClassDef | ast.GeneratorExp):
            own.update(_bound_by(node))
    return (used - own) | moved, moved


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it, but with these themselves."""
    todo = _body(function)
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, _SCOPES):
            todo.extend(_outside(node))
        else:
            todo.extend(ast.iter_child_nodes(node))


def _body(function: ast.AST) -> list[ast.AST]:
    match function:
        case ast.Lambda(body=body):
            return [body]
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            return list(body)
        case ast.ClassDef():
            return list(function.body)
        case ast.GeneratorExp():
            first, *rest = function.generators
            return [function.elt, first.target, *first.ifs, *rest]
        case _:
            return [function]


def _outside(function: ast.AST) -> Iterator[ast.AST]:
    """What of a function inside runs where it is defined: decorators, defaults, bases."""
    match function:
        case ast.Lambda(args=args) | ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
            yield from args.defaults
            yield from (each for each in args.kw_defaults if each is not None)
            yield from getattr(function, "decorator_list", [])
        case ast.ClassDef():
            yield from (*function.bases, *function.keywords, *function.decorator_list)
        case ast.GeneratorExp():
            yield function.generators[0].iter
        case _:
            yield from ()


def parameters(args: ast.arguments) -> list[str]:
    """All parameters of a function."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    every += [each for each in (args.vararg, args.kwarg) if each is not None]
    return [each.arg for each in every]


def _parameters(function: ast.AST) -> list[str]:
    return parameters(function.args) if isinstance(function, _FUNCTIONS) else []


def _bound_by(node: ast.AST) -> list[str]:
    """The names that a node binds, by itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case (
            ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
            | ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [each.asname or each.name.partition(".")[0] for each in names]
        case ast.GeneratorExp():  # a walrus inside binds a name of the function around it
            inside = (each for each in ast.walk(node) if isinstance(each, ast.NamedExpr))
            return [each.target.id for each in inside]
        case _:
            return []
