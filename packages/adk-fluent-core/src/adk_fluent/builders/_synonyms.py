"""Words under which others know what builders do, for the help of errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCHEMA: Final = "for data as the answer write agent @ Schema, or use .output_schema(Schema)"
_ASK: Final = "use .ask(message), or await .run(message)"
_AGAIN: Final = "to repeat write step * 3, or step * until(test, max=3)"
_INSTRUCT: Final = "use .instruct(...)"
_GATE: Final = "to ask a person before the next step write a >> gate(message=...)"

#: What to write instead of a method that no builder has.
METHODS: Final[Mapping[str, str]] = {
    "returns": _SCHEMA,
    "output": _SCHEMA,
    "output_type": _SCHEMA,
    "response_model": _SCHEMA,
    "save_as": 'use .writes("key")',
    "instructions": _INSTRUCT,
    "prompt": _INSTRUCT,
    "system_prompt": _INSTRUCT,
    "static": "use .static_instruct(...)",
    "describe": "use .description(...)",
    "tools": "call .tool(...) once for each",
    "callback": "use .before_model(...), .after_tool(...) and the like",
    "then": "for one after the other write a >> b",
    "parallel": "for both at the same time write a | b",
    "fallback": "for another one if it fails write a // b",
    "loop_until": _AGAIN,
    "loop_while": _AGAIN,
    "repeat": _AGAIN,
    "max_iterations": "use .max(...)",
    "proceed_if": "write Route().when(test, step)",
    "equals": "use .eq(...)",
    "race": "for the first that succeeds write race(a, b)",
    "map_over": 'for each item of a list write map_over("key", body)',
    "tap": "write a >> tap(fn)",
    "expect": "write a >> expect(test, message)",
    "transfer": "write a >> transfer(target), or let the model decide: .delegates(target)",
    "handoff": "let the model decide: .delegates(target); or write a >> transfer(target)",
    "gate": _GATE,
    "approve": _GATE,
    "approval": _GATE,
    "ask_human": _GATE,
    "ask_user": _GATE,
    "confirm": _GATE,
    "human_in_the_loop": _GATE,
    "human_input": _GATE,
    "interrupt": _GATE,
    "interrupt_before": _GATE,
    "interrupt_after": _GATE,
    "pause": _GATE,
    "requires_approval": f"for a tool use .tool(fn, require_confirmation=True); {_GATE}",
    "wait_for_human": _GATE,
    "resources": "use .inject(name=resource)",
    "temperature": "use .generate_content_config(GenerateContentConfig(temperature=...))",
    "stay": "use .disallow_transfer_to_parent()",
    "no_peers": "use .disallow_transfer_to_peers()",
    "isolate": "use .disallow_transfer_to_parent().disallow_transfer_to_peers()",
    "invoke": _ASK,
    "ainvoke": _ASK,
    "run_sync": _ASK,
    "astream": "use .stream(message)",
    "run_stream": "use .stream(message)",
}

#: The same for `S`.
TRANSFORMS: Final[Mapping[str, str]] = {
    "counter": 'write S.compute(n=lambda state: (state["n"] or 0) + 1)',
    "require": "use S.guard(...)",
    "when": "write Route().when(test, S.set(...))",
    "map": "use S.transform(...)",
    "keep": "use S.pick(...)",
    "remove": "use S.drop(...)",
    "delete": "use S.drop(...)",
}
