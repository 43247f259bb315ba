"""State and what leads to it: what its attributes, items and methods read and write."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._accepting import accepts
from adk_fluent.contracts._effects._machine import Machine
from adk_fluent.contracts._effects._names import field_of, is_ref, needs_value
from adk_fluent.contracts._effects._values import (
    IS_NONE,
    IS_NOT,
    UNCLEAR,
    Const,
    Fields,
    Live,
    Plain,
    Tracked,
    Value,
    is_lent,
    none_of,
    type_of,
)
from adk_fluent.contracts._types import Fit, fit, gives_none, is_certain, is_container
from adk_fluent.errors import StateKeyError
from adk_fluent.ir import UNSET

if TYPE_CHECKING:
    from adk_fluent.contracts._effects._facts import Facts

#: Attributes of ADK's contexts that give no state.
_OF_CONTEXT: Final = (
    *("agent_name", "app_name", "branch", "custom_metadata", "function_call_id"),
    *("invocation_id", "run_config", "tool_confirmation", "user_content", "user_id"),
)
#: Methods of ADK's contexts that touch no key of the user's.
_METHODS_OF_CONTEXT: Final = (
    *("add_events_to_memory", "add_memory", "add_session_to_memory", "get_artifact_version"),
    *("get_auth_response", "list_artifacts", "load_artifact", "request_confirmation"),
    *("request_credential", "save_artifact", "search_memory"),
)
#: Attributes of ADK's sessions that give no state.
_OF_SESSION: Final = ("app_name", "events", "id", "last_update_time", "user_id")


class Objects(Machine):
    """A walk that knows what is done with state."""

    # --- single keys -----------------------------------------------------------------------------

    def key(self, value: Value, node: ast.AST, does: str) -> str:
        """The state key that a value is.

        Raises:
            Unclear: It is not known.
        """
        self.needs_text(value, node, does)
        found = self.known_key(value)
        return self.unclear(node, f"{does} a key that is computed") if found is None else found

    def needs_text(self, value: Value, node: ast.AST, does: str) -> None:
        """Give up where a field stands for its key, which no state knows."""
        if isinstance(value, Live) and is_ref(value.it):
            named = ast.unparse(node) if isinstance(node, ast.expr) else value.it.key
            self.unclear(node, f"{does} the key `{named}`, which is a field: its text is `.key`")

    def known_key(self, value: Value) -> str | None:
        """The state key that a value is; None if it is not known."""
        if isinstance(value, Const) and isinstance(value.value, str):
            return value.value
        return None

    def reads(self, key: str, manner: str, facts: Facts) -> Value:
        """Look a key up, which fails if it is absent."""
        if key in facts.given:  # its own write, if no function inside has written another value
            return Plain(of=key)
        sure = key in facts.safe or self.forgives(KeyError)
        self.log.read(key, None if sure else UNSET)
        facts.safe |= {key}
        of = key if manner == "adk" else None
        return Plain(IS_NOT if key in facts.held else UNCLEAR, of=of)

    def gets(self, key: str, default: Value, manner: str, facts: Facts) -> Value:
        """Look a key up, with a default."""
        fixed = default.value if isinstance(default, Const) else UNSET
        if key not in facts.given:
            self.log.read(key, None if fixed is UNSET else fixed)
        # ADK gives the None of a key that was removed; core's view gives the default then
        none = none_of(default) if manner == "view" else UNCLEAR
        of = key if manner == "adk" else None
        return Plain(IS_NOT if none == IS_NOT else UNCLEAR, None, key, fixed, of)

    def writes(self, key: str, value: Value, facts: Facts) -> None:
        """Give a key a value; None removes it."""
        none = none_of(value)
        self.log.write(key, none, type_of(value), inside=self.around is not None)
        facts.given[key] = none
        facts.safe |= {key}
        facts.held -= {key}
        self.notice(facts)

    def may_write(self, key: str, value: Value, facts: Facts) -> None:
        """Give a key a value sometimes."""
        none = none_of(value)
        self.log.write(key, none, type_of(value), inside=self.around is not None)
        if key in facts.given:
            facts.given[key] |= none
        facts.held -= {key}
        self.notice(facts)

    def changes(self, value: Value, node: ast.AST, facts: Facts) -> None:
        """Change a value in place: of what state holds, newer versions of ADK make a write."""
        if is_lent(value):
            self.unclear(node, "changes in place what a schema's view of state gives,")
        if isinstance(value, Plain) and value.of is not None:
            self.may_write(value.of, Plain(IS_NOT), facts)

    def needs_writable(self, owner: Tracked, node: ast.AST) -> None:
        """Give up where writing fails, or does not last."""
        if owner.manner != "adk":
            why = "which no session keeps" if owner.manner == "live" else "which is read-only"
            self.unclear(node, f"writes to `{owner.name}`, {why},")

    # --- attributes ------------------------------------------------------------------------------

    def attribute(  # noqa: PLR0911  # a row for each
        self, owner: Tracked, node: ast.Attribute, facts: Facts
    ) -> Value:
        """``owner.name``."""
        name = node.attr
        called = f"{owner.name}.{name}"
        match owner.kind, name:
            case (("context" | "session"), "state"):
                return Tracked("state", owner.manner, None, called)
            case "context", "actions" if owner.manner == "adk":
                return Tracked("actions", "adk", None, called)
            case "context", "session":
                return Tracked("session", "live", None, called)
            case "actions", "state_delta":
                return Tracked("delta", "adk", None, called)
            case "actions", _:
                return Plain()
            case ("context", _) if name in _OF_CONTEXT:
                return Plain()
            case ("session", _) if name in _OF_SESSION:
                return Plain()
            case "bound", _:
                return self._reads_field(owner, node, facts)
            case _:
                return self.refuse(node, owner, f"uses {{}}.{name}")

    def _field(self, owner: Tracked, name: str, node: ast.AST) -> Any:
        found = field_of(owner.schema, name)
        if found is None:
            self.unclear(node, f"uses `{owner.name}.{name}`")
        return found

    def _reads_field(self, owner: Tracked, node: ast.Attribute, facts: Facts) -> Value:
        return self._field_value(self._field(owner, node.attr, node), node, facts)

    def _field_value(self, field: Any, node: ast.AST, facts: Facts) -> Value:
        """The value of a field, which has one or a default; None counts as absent."""
        if field.key not in facts.given:
            missing = needs_value(field) and not self.forgives(StateKeyError)
            default = UNSET if missing and field.key not in facts.held else None
            self.log.read(field.key, default, field.type)
            if needs_value(field):
                facts.holds(field.key)
        elif not self._holds_own(field, facts):
            self.unclear(node, f"reads `{field.key}`, which it has written or taken away itself,")
        none = UNCLEAR if gives_none(field.type) else IS_NOT
        return Plain(none, field.type, lent=is_container(field.type))

    def _holds_own(self, field: Any, facts: Facts) -> bool:
        """Whether a field surely holds what the function itself has given it."""
        if facts.given[field.key] != IS_NOT and needs_value(field):
            return False
        return is_certain(self.log.written_as(field.key), field.type)

    # --- items -----------------------------------------------------------------------------------

    def item(self, owner: Tracked, index: Value, node: ast.AST, facts: Facts) -> Value:
        """``owner[index]``."""
        if owner.kind != "state":
            self.refuse(node, owner)
        return self.reads(self.key(index, node, "reads"), owner.manner, facts)

    def sets_item(
        self, owner: Tracked, index: Value, value: Value, node: ast.AST, facts: Facts
    ) -> None:
        """``owner[index] = value``."""
        if owner.kind not in ("state", "delta"):
            self.refuse(node, owner)
        self.needs_writable(owner, node)
        self.writes(self.key(index, node, "writes"), value, facts)

    def sets_attribute(
        self, owner: Tracked, name: str, value: Value, node: ast.AST, facts: Facts
    ) -> None:
        """``owner.name = value``."""
        off = isinstance(value, Const) and not value.value
        if owner.kind == "actions" and name in ("escalate", "transfer_to_agent"):
            self.log.escalates |= name == "escalate" and not off
            self.log.transfers |= name == "transfer_to_agent" and not off
        elif owner.kind == "bound":
            self.needs_writable(owner, node)
            field = self._field(owner, name, node)
            self.writes(field.key, self.checked(field, value, IS_NONE | UNCLEAR), facts)
        elif owner.kind != "actions" or name not in ("skip_summarization", "transfer_reason"):
            self.unclear(node, f"sets `{owner.name}.{name}`")

    # --- methods ---------------------------------------------------------------------------------

    def method(  # noqa: PLR0911  # a row for each
        self, owner: Tracked, node: ast.Call, name: str, facts: Facts
    ) -> Value:
        """``owner.name(...)``."""
        match owner.kind, name, node.args, node.keywords:
            case "state", "get", [key], []:
                return self._gets(owner, key, None, facts)
            case "state", "get", [key, default], []:
                return self._gets(owner, key, default, facts)
            case "state", "get", [key], [ast.keyword(arg="default", value=default)]:
                return self._gets(owner, key, default, facts)
            case "state", ("keys" | "values" | "items"), [], []:
                self.log.reads_all = True
                return Plain(IS_NOT)
            case "state", "has_delta", [], []:
                return Plain(IS_NOT, bool)
            case "state", "setdefault", [key], []:
                return self._sets_default(owner, key, None, facts)
            case "state", "setdefault", [key, default], []:
                return self._sets_default(owner, key, default, facts)
            case (("state" | "delta"), "update", [given], []):
                return self._updates(owner, given, node, facts)
            case "context", _, _, _ if name in _METHODS_OF_CONTEXT:
                self.arguments(node, facts, f"{owner.name}.{name}")
                return Plain()
            case "bound", "edit", [field], []:
                return self._edits(owner, field, facts)
            case "bound", "unset", names, []:
                return self._unsets(owner, names, facts)
            case _:
                return self.refuse(node, owner, f"calls `{owner.name}.{name}`")

    def arguments(self, node: ast.Call, facts: Facts, name: str) -> None:
        """Look at what a call hands on."""
        raise NotImplementedError

    def _gets(self, owner: Tracked, key: ast.expr, default: ast.expr | None, facts: Facts) -> Value:
        asked = self.plain(key, facts)
        self.needs_text(asked, key, "reads")
        named = self.known_key(asked)
        other = Const(None) if default is None else self.plain(default, facts)
        if named is None:
            self.log.reads_all = True
            return Plain()
        return self.gets(named, other, owner.manner, facts)

    def _sets_default(
        self, owner: Tracked, key: ast.expr, default: ast.expr | None, facts: Facts
    ) -> Value:
        self.needs_writable(owner, key)
        named = self.key(self.plain(key, facts), key, "writes")
        value = Const(None) if default is None else self.plain(default, facts)
        if named in facts.given:
            return Plain()
        self.log.read(named, None)
        # a key that was removed is there for ADK, and stays None
        self.writes(named, Plain(none_of(value) | UNCLEAR), facts)
        return Plain(of=named)

    def _updates(self, owner: Tracked, given: ast.expr, node: ast.Call, facts: Facts) -> Value:
        self.needs_writable(owner, node)
        fields = self.fields(given, facts)
        if fields is None or fields.open:
            why = f": {fields.open}" if fields and fields.open else ""
            self.unclear(node, f"writes keys that are computed{why}")
        for key, (sure, value) in fields.items.items():
            (self.writes if sure else self.may_write)(key, value, facts)
        return Const(None)

    def fields(self, node: ast.expr, facts: Facts) -> Fields | None:
        """What an expression gives if it is a dict with known keys."""
        raise NotImplementedError

    def _edits(self, owner: Tracked, name: ast.expr, facts: Facts) -> Value:
        self.needs_writable(owner, name)
        return Tracked("edited", "adk", self._named(owner, name, facts), owner.name)

    def _named(self, owner: Tracked, name: ast.expr, facts: Facts) -> Any:
        """A field that is given as itself, or by the name of its attribute."""
        value = self.plain(name, facts)
        if isinstance(value, Live) and is_ref(value.it):
            return value.it
        return self._field(owner, self.key(value, name, "names"), name)

    def _unsets(self, owner: Tracked, names: list[ast.expr], facts: Facts) -> Value:
        for each in names:
            self.needs_writable(owner, each)
            self.writes(self._named(owner, each, facts).key, Const(None), facts)
        return Const(None)

    def lends(self, owner: Tracked, node: ast.AST, facts: Facts) -> Value:
        """What ``with state.edit(...)`` lends."""
        self._field_value(owner.schema, node, facts)
        return Plain(IS_NOT)

    def takes_back(self, owner: Tracked, facts: Facts) -> None:
        """What becomes of it in the end: what was not changed is not written."""
        field = owner.schema
        writes = self.writes if needs_value(field) else self.may_write
        self.log.doubtful[field.key] = None  # nobody sees what becomes of it
        writes(field.key, Plain(IS_NOT, field.type), facts)

    def checked(self, field: Any, value: Value, refused: int = 0) -> Value:
        """A value of a field, which its schema looks at, and refuses if it is none.

        Args:
            field: The field.
            value: The value.
            refused: When it is refused for being None, too, as bits.
        """
        none, read, kind = none_of(value), field.type, type_of(value)
        accepted = accepts(read, value.value) if isinstance(value, Const) else None
        if (accepted is False and none == IS_NOT) or fit(kind, read) is Fit.NO:
            self.log.refused[field.key] = (kind, read)
        known = is_certain(kind, read) or accepted is True
        if (none != IS_NONE and not known) or (none & refused and not gives_none(read)):
            self.log.doubtful[field.key] = None
        return Plain(none, read)
