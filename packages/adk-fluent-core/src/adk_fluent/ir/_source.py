"""The source text of a function, in a form that only a change of the program changes.

Comments, blank lines, indentation and the place in the file leave no trace. The text is made of
tokens, cut out by positions of the syntax tree: `ast.dump`, `ast.unparse` and bytecode differ
between versions of Python.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator
    from types import CodeType, FunctionType

    Function = ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef
    #: Line, column (in UTF-8 bytes), last line, column after the end.
    Span = tuple[int, int, int, int]

# `ast`, `tokenize`, `linecache` and `warnings` are imported where they are used: whoever only
# builds a pipeline does not need them, and `import adk_fluent` has to be quick.

_INDENT: Final = "\x0e"
_DEDENT: Final = "\x0f"
_BETWEEN: Final = "\x1f"


class _Index(NamedTuple):
    """What is known of a file.

    Attributes:
        lines: Its lines.
        functions: Its functions and lambdas, by first line.
        imported: The names that it imports outside of functions and classes.
    """

    lines: list[str]
    functions: dict[int, list[Function]]
    imported: set[str]


_indexes: dict[str, _Index] = {}


def text_of(function: FunctionType) -> str | None:
    """The normalised source text of a function; None when it has no source."""
    import linecache  # noqa: PLC0415

    code = function.__code__
    linecache.lazycache(code.co_filename, function.__globals__)  # its module may be in an archive
    return _text(code.co_filename, code)


def tree_of(function: FunctionType) -> Function | None:
    """The syntax tree of a function; None when its source is not there, or no more what it runs."""
    import linecache  # noqa: PLC0415

    code = function.__code__
    linecache.lazycache(code.co_filename, function.__globals__)
    index = _index_of(code.co_filename)
    found = _pick(index, code)
    return found if found is not None and _is_source(found, code, index.imported) else None


@lru_cache(maxsize=8192)
def _text(filename: str, code: CodeType) -> str | None:
    # the file is named since code objects are equal even when that differs
    index = _index_of(filename)
    found = _pick(index, code)
    return None if found is None else _BETWEEN.join(_words(*_cut(found, index.lines)))


# --- finding a function in its file --------------------------------------------------------------


def _index_of(filename: str) -> _Index:
    import linecache  # noqa: PLC0415

    linecache.checkcache(filename)
    lines = linecache.getlines(filename)
    known = _indexes.get(filename)
    if known is None or known.lines is not lines:
        known = _indexes[filename] = _index(lines)
    return known


def _index(lines: list[str]) -> _Index:
    import ast  # noqa: PLC0415
    import warnings  # noqa: PLC0415

    index = _Index(lines, {}, set())
    try:
        with warnings.catch_warnings():  # Python gave them when it compiled the file
            warnings.simplefilter("ignore")
            tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return index  # not Python alone, such as a notebook's cell that has commands in it
    for each in ast.walk(tree):
        if isinstance(each, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            index.functions.setdefault(_first_line(each), []).append(each)
    todo: list[ast.AST] = [tree]
    while todo:
        each = todo.pop()
        if isinstance(each, ast.Import | ast.ImportFrom):
            index.imported.update(n.asname or n.name.partition(".")[0] for n in each.names)
        elif isinstance(each, ast.Module | ast.If | ast.Try | ast.With):
            todo.extend(ast.iter_child_nodes(each))
    return index


def _first_line(found: Function) -> int:
    decorators: list[ast.expr] = getattr(found, "decorator_list", [])
    return min([found.lineno, *(each.lineno for each in decorators)])


def _pick(index: _Index, code: CodeType) -> Function | None:
    """The one that `code` was compiled from, of the functions that begin on its line."""
    import ast  # noqa: PLC0415

    found = index.functions.get(code.co_firstlineno, [])
    if code.co_name != "<lambda>":
        named = [f for f in found if not isinstance(f, ast.Lambda) and f.name == code.co_name]
        return named[0] if named else None
    lambdas = [f for f in found if isinstance(f, ast.Lambda)]
    if len(lambdas) < 2:
        return lambdas[0] if lambdas else None
    used = list(_positions(code))
    if not used:  # it is a constant, or Python was told to keep no positions
        return next((f for f in lambdas if _is_source(f, code, index.imported)), None)
    around = [f for f in lambdas if all(_inside(span, _span(f.body)) for span in used)]
    return max(around, key=lambda f: _span(f.body)[:2], default=None)  # the innermost


def _positions(code: CodeType) -> Iterator[Span]:
    """Where the expressions stand that the instructions of a lambda were made of."""
    for line, end_line, column, end_column in code.co_positions():
        if line is not None and end_line is not None and column is not None and end_column:
            yield (line, column, end_line, end_column)


def _span(found: ast.expr | Function) -> Span:
    return (found.lineno, found.col_offset, found.end_lineno or 0, found.end_col_offset or 0)


def _inside(inner: Span, outer: Span) -> bool:
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


def _is_source(found: Function, code: CodeType, imported: set[str]) -> bool:
    if any(name.startswith("@py") for name in (*code.co_names, *code.co_varnames)):
        return True  # pytest has rewritten its assert statements
    try:
        return _compiles_to(found, code, imported)
    except (SyntaxError, ValueError, RecursionError):
        return False


def _compiles_to(found: Function, code: CodeType, imported: set[str]) -> bool:
    """Whether a function is what `code` was compiled from.

    Python calls what a module imports in another way than it calls methods, so imports matter.
    """
    import __future__  # noqa: PLC0415

    import ast  # noqa: PLC0415
    import warnings  # noqa: PLC0415

    flags = code.co_flags & __future__.annotations.compiler_flag
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [ast.alias(name) for name in sorted(imported) if name != "*"]
        body: list[ast.stmt] = [ast.Import(names)] if names else []
        tree = ast.fix_missing_locations(ast.Module([*body, _surrounded(found, code)], []))
        todo = [compile(tree, code.co_filename, "exec", flags, dont_inherit=True)]
    for each in todo:  # code of inner functions is appended as it is met
        if each.co_name == code.co_name and _alike(each, code):
            return True
        todo.extend(_codes(each))
    return False


def _surrounded(found: Function, code: CodeType) -> ast.stmt:
    """The function in one that binds its free variables, and in a class if it has one around it."""
    import ast  # noqa: PLC0415
    from copy import copy  # noqa: PLC0415

    inner: ast.stmt
    if isinstance(found, ast.Lambda):
        inner = ast.Expr(found)
    else:
        inner = copy(found)
        inner.decorator_list = []
    free = [name for name in code.co_freevars if name != "__class__"]
    names = code.co_qualname.split(".")[:-1]
    while names and names[-1] == "<locals>":
        names = names[:-2]
    if names or len(free) < len(code.co_freevars):  # it mangles names, or is what `super` asks for
        body, inner = inner, ast.parse(f"class {names[-1] if names else '_'}: pass").body[0]
        setattr(inner, "body", [body])  # noqa: B010  # a class has one
    outer = ast.parse(f"def _({', '.join(free)}): pass").body[0]
    setattr(outer, "body", [inner])  # noqa: B010
    return outer


def _codes(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if hasattr(each, "co_consts")]


def _alike(one: CodeType, other: CodeType) -> bool:
    """Whether code does the same; where it stands does not matter."""
    return _facts(one) == _facts(other) and all(
        _alike(mine, theirs) for mine, theirs in zip(_codes(one), _codes(other), strict=True)
    )


def _facts(code: CodeType) -> tuple[object, ...]:
    # the body of a class has the class's path, which differs where it is compiled by itself
    path = code.co_qualname if "__qualname__" in code.co_names else None
    consts = [each for each in code.co_consts if not hasattr(each, "co_consts") and each != path]
    plain = [(cast("type[object]", type(each)), each) for each in consts]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (code.co_code, plain, len(code.co_consts), names)


# --- from source to words ------------------------------------------------------------------------


def _cut(found: Function, lines: list[str]) -> tuple[str, int]:
    """The function by itself, and how many words of it were put in front to make it a program."""
    import ast  # noqa: PLC0415

    line, column, end_line, end_column = _span(found)
    if isinstance(found, ast.Lambda):
        rows = [row.encode() for row in lines[line - 1 : end_line]]
        rows[-1] = rows[-1][:end_column]
        rows[0] = rows[0][column:]
        return f"({b''.join(rows).decode()})", 0
    text = "".join(lines[_first_line(found) - 1 : end_line])
    return (f"if 1:\n{text}", 5) if column else (text, 0)


def _words(text: str, skipped: int) -> list[str]:
    """Tokens as text, without what does not matter; an indentation is a mark, not its width."""
    from token import COMMENT, DEDENT, INDENT, NEWLINE, NL, STRING  # noqa: PLC0415

    marks = {INDENT: _INDENT, DEDENT: _DEDENT, NEWLINE: "\n"}
    words: list[str] = []
    for kind, word in _tokens(text):
        if kind in marks:
            words.append(marks[kind])
        elif kind == STRING and words and words[-1] == _INDENT:
            words.append(_docstring(word))
        elif kind not in (COMMENT, NL):
            words.append(word)
    while words and words[-1] in ("", "\n", _DEDENT):  # the last token is empty
        words.pop()
    return words[skipped:]


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """Type and text of each token; an f-string is one, as it was before Python 3.12."""
    import io  # noqa: PLC0415
    import token  # noqa: PLC0415
    import tokenize  # noqa: PLC0415

    opens = {getattr(token, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
    closes = {getattr(token, name, -1) for name in ("FSTRING_END", "TSTRING_END")}
    rows = text.split("\n")
    depth, start = 0, (0, 0)
    for each in tokenize.generate_tokens(io.StringIO(text).readline):
        if each.type in opens:
            start = start if depth else each.start
            depth += 1
        elif each.type in closes:
            depth -= 1
            if not depth:
                yield token.STRING, _between(rows, start, each.end)
        elif not depth:
            yield each.type, each.string


def _between(rows: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    (line, column), (end_line, end_column) = start, end
    if line == end_line:
        return rows[line - 1][column:end_column]
    inner = rows[line : end_line - 1]
    return "\n".join([rows[line - 1][column:], *inner, rows[end_line - 1][:end_column]])


def _docstring(text: str) -> str:
    """A string that opens a block, without the indentation of its lines."""
    return "\n".join([row.strip() for row in text.split("\n")])
