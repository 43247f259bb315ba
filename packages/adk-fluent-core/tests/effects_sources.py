"""Random functions over state, as source, and state that notes what is done to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.flow._view import StateView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from random import Random

KEYS: Final = ("a", "b", "c", "d")
_NAMES: Final = ("v", "w")
_CONSTANTS: Final = ("0", "1", "'x'", "''", "None", "True", "[]", "2.5")
#: What the functions find in their module.
HEADER: Final = """
from contextlib import suppress

KEY = "a"
BOTH = ("a", "b")


def same(value=None, *more):
    return value


def toss(chances=[]):
    return bool(TOSSES.pop()) if TOSSES else False


TOSSES = []
"""


class Source:
    """Makes one function.

    Args:
        random: Makes the choices.
        tool: Whether it is a tool, which writes through a context.
    """

    def __init__(self, random: Random, *, tool: bool) -> None:
        self._random = random
        self._tool = tool
        self._lines: list[str] = []
        self._left = 25
        self._loops = 0
        self._inner = 0
        self._dicts = False

    def text(self) -> str:
        """The source of ``def made(...)``."""
        header = "def made(tool_context, q=1):" if self._tool else "def made(state):"
        self._lines = [header, "    v = w = None"]
        if self._tool:
            self._lines.append("    state = tool_context.state")
        elif self._random.random() < 0.5:
            self._lines.append("    out = {}")
            self._dicts = True
        self._block(1, self._random.randint(1, 5))
        self._return(1)
        return "\n".join(self._lines) + "\n"

    # --- statements ------------------------------------------------------------------------------

    def _block(self, depth: int, count: int) -> None:
        for _ in range(count):
            self._statement(depth)

    def _put(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _statement(self, depth: int) -> None:
        self._left -= 1
        simple = [self._assign, self._expression, self._write, self._write]
        deep = [self._if, self._if, self._for, self._for_keys, self._try, self._with, self._def]
        deep += [self._while, self._match, self._early, self._finally]
        if self._loops:
            simple.append(self._leave_loop)
        if self._left <= 0 or depth > 4:
            deep = []
        self._random.choice([*simple, *deep])(depth)

    def _assign(self, depth: int) -> None:
        name = self._random.choice(_NAMES)
        form = self._random.choice(("{} = {}", "{} = {}", "{} = same({})", "{0}, _ = {1}, 1"))
        self._put(depth, form.format(name, self._value()))

    def _expression(self, depth: int) -> None:
        self._put(depth, self._value())

    def _write(self, depth: int) -> None:
        key, value = self._key(), self._value()
        if self._tool:
            form = self._random.choice(
                (
                    "state[{k}] = {v}",
                    "state[{k}] = {v}",
                    "tool_context.state[{k}] = {v}",
                    "state.update({{{k}: {v}}})",
                    "state.setdefault({k}, {v})",
                    "v = state.setdefault({k}, {v})",
                )
            )
        elif self._dicts:
            form = self._random.choice(
                (
                    "out[{k}] = {v}",
                    "out[{k}] = {v}",
                    "out.update({{{k}: {v}}})",
                    "out.setdefault({k}, {v})",
                    "out.pop({k}, None)",
                    "out |= {{{k}: {v}}}",
                    "out = {{**out, {k}: {v}}}",
                    "out = {{{k}: {v}}}",
                    "v = out.get({k}, {v})",
                    "same(len(out), {v})",
                )
            )
        else:
            form = "w = [{v}]"
        self._put(depth, form.format(k=key, v=value))

    def _if(self, depth: int) -> None:
        self._put(depth, f"if {self._test()}:")
        self._block(depth + 1, self._random.randint(1, 2))
        if self._random.random() < 0.5:
            self._put(depth, "else:")
            self._block(depth + 1, self._random.randint(1, 2))

    def _early(self, depth: int) -> None:
        self._put(depth, f"if {self._test()}:")
        if self._random.random() < 0.2:
            self._put(depth + 1, "raise ValueError")
        else:
            self._return(depth + 1)

    def _loop_body(self, depth: int) -> None:
        self._loops += 1
        self._block(depth + 1, self._random.randint(1, 3))
        self._loops -= 1
        if self._random.random() < 0.3:
            self._put(depth, "else:")
            self._block(depth + 1, 1)

    def _for(self, depth: int) -> None:
        self._put(depth, f"for i in range({self._random.randint(0, 2)}):")
        self._loop_body(depth)

    def _for_keys(self, depth: int) -> None:
        items = self._random.choice(('("a", "c")', "BOTH", '["b"]'))
        self._put(depth, f"for key in {items}:")
        choices = ["v = state.get(key)", "v = key in state and state[key]"]
        choices += ["state[key] = 1"] if self._tool else ["w = state.get(key, 1)"]
        if self._dicts:
            choices.append("out[key] = state.get(key, 'n')")
        self._put(depth + 1, self._random.choice(choices))
        self._loop_body(depth)

    def _while(self, depth: int) -> None:
        self._inner += 1
        count = f"n{self._inner}"
        self._put(depth, f"{count} = 0")
        self._put(depth, f"while {count} < 2 and {self._test()}:")
        self._put(depth + 1, f"{count} += 1")
        self._loop_body(depth)

    def _leave_loop(self, depth: int) -> None:
        self._put(depth, f"if {self._test()}: {self._random.choice(('break', 'continue'))}")

    def _try(self, depth: int) -> None:
        self._put(depth, "try:")
        self._block(depth + 1, self._random.randint(1, 3))
        error = self._random.choice(
            ("KeyError", "Exception", "(TypeError, LookupError)", "ValueError")
        )
        self._put(depth, f"except {error}:")
        if self._random.random() < 0.2:
            self._put(depth + 1, "raise")
        else:
            self._block(depth + 1, 1)
        if self._random.random() < 0.3:
            self._put(depth, "else:")
            self._block(depth + 1, 1)

    def _finally(self, depth: int) -> None:
        self._put(depth, "try:")
        self._block(depth + 1, self._random.randint(1, 2))
        if self._random.random() < 0.4:
            self._return(depth + 1)
        self._put(depth, "finally:")
        loops, self._loops = self._loops, 0  # no `continue` there in Python 3.11's warnings
        self._block(depth + 1, 1)
        self._loops = loops

    def _with(self, depth: int) -> None:
        self._put(depth, f"with suppress({self._random.choice(('KeyError', 'ValueError'))}):")
        self._block(depth + 1, self._random.randint(1, 2))
        if self._random.random() < 0.3:
            self._return(depth + 1)

    def _match(self, depth: int) -> None:
        self._put(depth, f"match {self._value()}:")
        self._put(depth + 1, self._random.choice(("case 1:", "case str(v):", "case None | 'x':")))
        self._block(depth + 2, 1)
        self._put(depth + 1, self._random.choice(("case v:", "case _ if " + self._test() + ":")))
        self._block(depth + 2, 1)

    def _def(self, depth: int) -> None:
        self._inner += 1
        name = f"inner{self._inner}"
        self._put(depth, f"def {name}():")
        if self._tool and self._random.random() < 0.5:
            self._put(depth + 1, f"tool_context.state[{self._key()}] = {self._constant()}")
        self._put(depth + 1, f"return state.get({self._key()}) or state[{self._key()}]")
        if self._random.random() < 0.7:
            self._put(depth, f"v = {name}()")

    def _return(self, depth: int) -> None:
        if self._tool:
            self._put(depth, f"return {self._value()}")
            return
        fields = ", ".join(f"{self._key()}: {self._value()}" for _ in range(2))
        forms = ["{{{f}}}", "{{{f}}} if {t} else None", "{{}}", "None", "dict({k}={v})"]
        if self._dicts:
            forms += ["out"] * 6 + ["{{**out, {f}}}", "out | {{{f}}}", "out if {t} else {{}}"]
        form = self._random.choice(forms)
        bare = self._random.choice(KEYS)
        self._put(depth, "return " + form.format(f=fields, t=self._test(), k=bare, v=self._value()))

    # --- expressions -----------------------------------------------------------------------------

    def _key(self) -> str:
        return "KEY" if self._random.random() < 0.1 else repr(self._random.choice(KEYS))

    def _constant(self) -> str:
        return self._random.choice(_CONSTANTS)

    def _value(self, depth: int = 0) -> str:
        r = self._random
        key = self._key()
        simple = [
            self._constant(),
            r.choice(_NAMES),
            f"state[{key}]",
            f"state.get({key})",
            f"state.get({key}, {self._constant()})",
        ]
        if depth > 2:
            return r.choice(simple)

        def value() -> str:
            return self._value(depth + 1)

        deep = [
            lambda: f"({value()} if {self._test(depth + 1)} else {value()})",
            lambda: f"({value()} or {value()})",
            lambda: f"({value()} and {value()})",
            lambda: f"same({value()}, {value()})",
            lambda: f"[{value()} for j in range({r.randint(0, 1)}) if {self._test(depth + 1)}]",
            lambda: f"{{k: {value()} for k in BOTH}}",
            lambda: f"(lambda: {value()})()",
            lambda: f"sorted([1], key=lambda v: str({value()}))",
            lambda: f'f"{{{r.choice(_NAMES)}}} {{{simple[2]}}}"',
            lambda: f"str({value()})",
            lambda: f"({r.choice(_NAMES)} := {value()})",
            lambda: f"({self._test(depth + 1)})",
            lambda: f"any({value()} for j in range(1))",
        ]
        return r.choice([*simple, r.choice(deep)()])

    def _test(self, depth: int = 0) -> str:
        r = self._random
        key = self._key()
        name = r.choice(_NAMES)
        simple = [
            "toss()",
            f"{key} in state",
            f"{key} not in state",
            f"state.get({key})",
            f"not state.get({key})",
            f"state.get({key}) is None",
            f"state.get({key}) is not None",
            f"state.get({key}) == 'x'",
            f"state.get({key}, 1) != 1",
            f"state.get({key}) in (1, 'x')",
            f"{name} is None",
            f"{name}",
            f"({name} := state.get({key}))",
            f"({name} := state.get({key})) is not None",
            "all(k in state for k in BOTH)",
            "any(k not in state for k in ('a', 'c'))",
        ]
        if depth > 2 or r.random() < 0.6:
            return r.choice(simple)
        form = r.choice(("({} and {})", "({} or {})", "(not ({} and {}))", "same({}, {})"))
        return form.format(self._test(depth + 1), self._test(depth + 1))


class Noted:
    """What was done to state.

    Attributes:
        asked: Keys that were looked up, in any way.
        missed: The errors of keys that were not there.
        all: Whether all keys were looked at.
    """

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.missed: dict[int, str] = {}
        self.all: bool = False

    def miss(self, key: str) -> KeyError:
        """The error of a key that is not there."""
        error = KeyError(key)
        self.missed[id(error)] = key
        self._kept = [*getattr(self, "_kept", []), error]
        return error


class NotedView(StateView):
    """State of a function step that notes what is done to it."""

    __slots__ = ("noted",)

    def __init__(self, state: Mapping[str, Any], noted: Noted) -> None:
        super().__init__(state)
        self.noted = noted

    def __getitem__(self, key: str) -> Any:
        self.noted.asked.add(key)
        if key not in self._state:
            raise self.noted.miss(key)
        return self._state[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Look up."""
        self.noted.asked.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.noted.asked.add(str(key))
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self.noted.all = True
        return super().__iter__()


class NotedState:
    """ADK's state, as all its versions have it; it notes what is done to it."""

    def __init__(self, value: dict[str, Any], noted: Noted) -> None:
        self.value = value
        self.delta: dict[str, Any] = {}
        self.ever: set[tuple[str, bool]] = set()
        self.noted = noted

    def __getitem__(self, key: str) -> Any:
        if key in self.delta:
            return self.delta[key]
        self.noted.asked.add(key)
        if key not in self.value:
            raise self.noted.miss(key)
        return self.value[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.ever.add((key, value is None))
        self.delta[key] = value

    def __contains__(self, key: str) -> bool:
        if key not in self.delta:
            self.noted.asked.add(key)
        return key in self.value or key in self.delta

    def get(self, key: str, default: Any = None) -> Any:
        """Look up."""
        return self[key] if key in self else default  # noqa: SIM401  # this is it

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Look up, and write what is not there."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, delta: dict[str, Any]) -> None:
        """Write several."""
        for key, value in delta.items():
            self[key] = value


class Context:
    """A tool's context."""

    def __init__(self, state: NotedState) -> None:
        self.state = state
