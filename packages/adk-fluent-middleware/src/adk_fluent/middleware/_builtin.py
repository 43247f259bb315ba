"""What all middlewares here have: options that are checked, a name, and a description."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, wraps
from inspect import Parameter, cleandoc, signature
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    ParamSpec,
    TypeVar,
    cast,
    dataclass_transform,
    get_type_hints,
)

from adk_fluent.errors import AdkFluentError, UsageError, nearest_name
from adk_fluent.extend import find_middleware
from adk_fluent.ir import MiddlewareRef
from adk_fluent.middleware._places import name_of_class
from adk_fluent.protocol import Middleware, MiddlewareDesc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import Field

    from pydantic import BaseModel

P = ParamSpec("P")
T = TypeVar("T")
_DEPENDENCY: Final = "dependency"


def dependency(*, default_factory: Callable[[], Any]) -> Any:
    """A field that holds a live object (a clock, a store, a function), which no file can name.

    A reference to a middleware by name leaves it as the prototype has it.
    """
    return field(default_factory=default_factory, metadata={_DEPENDENCY: True}, repr=False)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field, dependency))
def builtin(cls: type[T]) -> type[T]:
    """Make a class a middleware whose fields are its options, given by keyword and checked.

    Its name in references, files and on the command line is that in `MIDDLEWARES`.
    """
    made: Any = dataclass(kw_only=True, eq=False)(cls)
    made.name = name_of_class(cls.__name__)
    made.__init__ = _noting(made.__init__, made.name, [e for e in fields(made) if e.init])
    return made


def live_options(kind: type[Any]) -> tuple[str, ...]:
    """The options of a built-in that no file can hold."""
    return tuple(each.name for each in fields(kind) if each.init and _is_live(each))


def _is_live(option: Field[Any]) -> bool:
    return _DEPENDENCY in option.metadata


def _noting(
    init: Callable[..., None], name: str, takes: Sequence[Field[Any]]
) -> Callable[..., None]:
    """A constructor that says which options there are, and notes which live ones are as usual."""
    live = [each.name for each in takes if _is_live(each)]
    known = [each.name for each in takes]
    needed = [each.name for each in takes if each.default is each.default_factory is MISSING]

    @wraps(init)
    def noting(self: Any, *given: Any, **options: Any) -> None:
        only_by_name(name, given, known)
        for each in options:
            if each not in known:
                raise _unknown(name, each, known)
        for each in needed:
            if each not in options:
                raise _missing(name, each)
        init(self, **options)
        self._usual = {each: getattr(self, each) for each in live if each not in options}

    return noting


class _Described:
    """The description of the class that it is asked of."""

    def __get__(self, instance: object, owner: type[BuiltIn]) -> MiddlewareDesc:
        return describe(owner)


class BuiltIn(Middleware):
    """A middleware with options."""

    adds_tools: Sequence[str] | None = ()
    #: What it is called in references, files and on the command line.
    name: ClassVar[str] = ""
    #: Its name, what it does, and the JSON Schema of its options.
    DESC: ClassVar[MiddlewareDesc] = _Described()  # pyright: ignore[reportAssignmentType]  # made when asked

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have.
        """
        options = options_of(type(self))
        given = {name: getattr(self, name) for name in options.model_fields}
        for name, value in checked(self.name, options, given).items():
            setattr(self, name, value)  # lists are copied

    def __middleware_ref__(self) -> MiddlewareRef | None:
        """Its name and its settings, as files have them; None if those are not all there is to it.

        It is more than that if it holds a live object that somebody gave it, if its class is not
        the one that has the name, and if a setting is something that no file can hold.
        """
        try:
            known = find_middleware(self.name)
        except AdkFluentError:
            return None
        live = live_options(type(self))
        usual = getattr(self, "_usual", {})
        if known is not self.DESC or any(
            name not in usual or getattr(self, name) is not usual[name] for name in live
        ):
            return None
        config: dict[str, Any] = {}
        for name, option in options_of(type(self)).model_fields.items():
            value = getattr(self, name)
            if option.is_required() or value != option.get_default(call_default_factory=True):
                try:
                    config[name] = _plain(value)
                except TypeError:
                    return None
        return MiddlewareRef(self.name, config or None)


def _plain(value: Any) -> Any:
    """A setting as files have it.

    Raises:
        TypeError: No file can hold it.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value)
        if all(type(key) is str for key in rows):
            return {key: _plain(each) for key, each in rows.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("Sequence[Any]", value)]
    raise TypeError(type(cast("object", value)).__name__)


def checked(name: str, options: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Options with which a middleware can be made, of those that were given.

    Raises:
        UsageError: One has a value that it cannot have, or there is no such option.
    """
    from pydantic import ValidationError  # noqa: PLC0415  # slow to import, and ADK has it

    try:
        made = options.model_validate(dict(given))
    except ValidationError as error:
        raise _wrong(name, error, options) from None
    return {each: getattr(made, each) for each in given}


def _wrong(name: str, error: Any, options: type[BaseModel]) -> UsageError:
    found: list[Any] = error.errors()
    option = str(found[0]["loc"][0]) if found[0]["loc"] else ""
    if found[0]["type"] == "extra_forbidden":
        return _unknown(name, option, options.model_fields)
    if found[0]["type"] == "missing":
        return _missing(name, option)
    # where it may be one thing or another, the one that the value was meant to be
    of_it = [each for each in found if each["loc"][:1] == found[0]["loc"][:1]]
    deepest = max(len(each["loc"]) for each in of_it)
    meant = [each for each in of_it if len(each["loc"]) == deepest]
    return UsageError(
        f"{name}({option}=...) cannot have this value",
        found=shown(meant[0]["input"]),
        help=_wanted(meant),
    )


def _unknown(name: str, option: str, known: Iterable[str]) -> UsageError:
    near = nearest_name(option, known)
    return UsageError(
        f"{name} has no option {option!r}",
        help=f"did you mean {near!r}?" if near else f"adk-fluent middleware show {name}",
    )


def _missing(name: str, option: str) -> UsageError:
    return UsageError(f"{name} needs the option {option!r}", help=f"{name}({option}=...)")


def only_by_name(name: str, given: Sequence[Any], known: Sequence[str]) -> None:
    """Refuse options without a name.

    Raises:
        UsageError: There is one.
    """
    if given:
        raise UsageError(
            f"{name} takes its options by name",
            found=shown(given[0]),
            help=f"{name}({known[0]}=...), for one" if known else None,
        )


#: What pydantic wants, by the type of its error.
_WANTED: Final = {
    "bool_type": "True or False",
    "dict_type": "a dict",
    "float_type": "a number",
    "int_type": "a whole number",
    "sequence_str": "a list",
    "string_type": "a text",
}


def _wanted(errors: Sequence[Any]) -> str:
    """What would have been right, of the errors about one value."""
    words: list[str] = []
    for each in errors:
        word = _WANTED.get(each["type"])
        if each["type"] == "literal_error":
            word = each["ctx"]["expected"]
        elif each["type"] == "is_instance_of" and each["ctx"]["class"] == "Sequence":
            word = "a list"
        if word is None:
            return f"{each['msg'][:1].lower()}{each['msg'][1:]}"
        if each["type"] == "sequence_str":
            word = f"{word}, such as {[each['input'][:40]]}"
        words.append(word)
    return f"give {', or '.join(dict.fromkeys(words))}"


def shown(value: Any) -> str:
    """A plain value, and of others the type: there may be a key in them."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)[:200]
    return f"a value of type {type(cast('object', value)).__qualname__}"


def checked_options(make: Callable[P, T]) -> Callable[P, T]:
    """A function whose options are checked as those of middlewares are."""

    @wraps(make)
    def checking(*given: P.args, **options: P.kwargs) -> T:
        only_by_name(make.__name__, given, list(signature(make).parameters))
        right = checked(make.__name__, _options_for(make), options)
        return cast("Callable[..., T]", make)(**right)

    return checking


@cache
def _options_for(make: Callable[..., Any]) -> type[BaseModel]:
    hints = get_type_hints(make, include_extras=True)
    parameters = signature(make).parameters.values()
    return _model(
        make.__name__, {each.name: (hints[each.name], each.default) for each in parameters}
    )


@cache
def options_of(kind: type[Any]) -> type[BaseModel]:
    """The options of a middleware as a pydantic model; without its live objects."""
    hints = get_type_hints(kind, include_extras=True)
    made: dict[str, tuple[Any, Any]] = {}
    for each in fields(kind):
        if not each.init or _is_live(each):
            continue
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        made[each.name] = (hints[each.name], Parameter.empty if default is MISSING else default)
    return _model(kind.__name__, made)


def settings(
    name: str, parameters: Mapping[str, tuple[Any, Any]]
) -> tuple[type[BaseModel], list[str]]:
    """The options among parameters, each a type and a default, and the names of all others.

    An option is what JSON can hold; the others are live objects.
    """
    from pydantic import PydanticUserError, TypeAdapter  # noqa: PLC0415  # see above

    options: dict[str, tuple[Any, Any]] = {}
    for each, (hint, default) in parameters.items():
        if hint in (Any, object):  # nobody has said what it is
            continue
        try:
            TypeAdapter(hint).json_schema()
        except PydanticUserError:
            continue
        options[each] = (hint, default)
    return _model(name, options), [each for each in parameters if each not in options]


def _model(name: str, options: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
    from pydantic import ConfigDict, create_model  # noqa: PLC0415  # see above

    config = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)
    made: dict[str, Any] = {
        each: (hint, ... if default is Parameter.empty else default)
        for each, (hint, default) in options.items()
    }
    return create_model(name, __config__=config, **made)


def schema_of(options: type[BaseModel], said: Mapping[str, str]) -> dict[str, Any]:
    """The JSON Schema of options, with what is said about each."""
    schema = options.model_json_schema()
    for option, shape in schema.get("properties", {}).items():
        shape.pop("title", None)
        if option in said:
            shape["description"] = said[option]
    schema.pop("title", None)
    return schema


@cache
def describe(kind: type[BuiltIn]) -> MiddlewareDesc:
    """The description of a built-in: its name, the first sentence about it, and its options."""
    doc = cleandoc(kind.__doc__ or "")
    options = options_of(kind)
    schema = schema_of(options, arguments(doc))
    return MiddlewareDesc(kind.name, summary(doc), _Maker(kind), schema, kind.adds_tools)


class _Maker:
    """Makes a built-in from settings, of which a file may have any."""

    def __init__(self, kind: type[BuiltIn]) -> None:
        self._kind = kind
        #: The options that no file can hold.
        self.live = live_options(kind)

    def __call__(self, **config: Any) -> BuiltIn:
        return self._kind(**checked(self._kind.name, options_of(self._kind), config))


def summary(doc: str) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(doc.partition("\n\n")[0].split())


def arguments(doc: str) -> Mapping[str, str]:
    """What a Google-style docstring says about each argument or attribute."""
    found: dict[str, str] = {}
    for section in re.findall(r"\n(?:Args|Attributes):\n((?: .*\n?)*)", doc):
        last = ""
        for line in section.splitlines():
            named = re.fullmatch(r"    (\w+): (.*)", line)
            if named:
                last = named[1]
                found[last] = named[2].strip()
            elif last:
                found[last] += f" {line.strip()}"
    return found
