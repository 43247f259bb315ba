"""A suite over a small support desk; run it with ``adk-fluent eval run support_desk.py:suite``.

The model is scripted, so that it runs offline; replace it by a name such as ``gemini-2.5-flash``.

Prints::

    <FluentEvalReport 'support desk': 8 runs, 100% passed (51% to 100%), ok>
"""

from __future__ import annotations

from adk_fluent import Agent
from adk_fluent.eval import FluentCase, FluentEvalSuite, Gate, ToolCall, Turn
from adk_fluent.testing import Call, ScriptedModel, rule

ORDERS = {"A1": "shipped", "A2": "lost"}


def find_order(order: str) -> dict[str, str]:
    """Look up an order."""
    return {"status": ORDERS.get(order, "unknown")}


model = ScriptedModel(
    rules=[
        rule("shipped", reply="It is on its way."),
        rule("lost", reply="I am sorry, it is lost. I have opened a claim."),
        rule("A1", reply=Call("find_order", {"order": "A1"})),
        rule("A2", reply=Call("find_order", {"order": "A2"})),
    ],
    default="Good day. Which order is it about?",
)
desk = Agent("desk", model).instruct("Help customers.").tool(find_order).writes("answer")

suite = FluentEvalSuite(
    "support desk",
    desk,
    [
        FluentCase(
            ["Hello", Turn("Where is A1?", expected_response_contains="way")],
            expected_trajectory=[ToolCall("find_order", {"order": "A1"})],
            id="on-its-way",
            tags=["orders"],
        ),
        FluentCase(
            "Where is A2?",
            expected_response_contains="claim",
            state_assertions={"answer": lambda answer: len(answer) < 80},
            id="lost",
            tags=["orders"],
        ),
        FluentCase(
            "Where is A1?",
            mock_tool_outputs={"find_order": {"status": "lost"}},
            expected_response_contains="lost",
            id="mocked",
            tags=["orders"],
        ),
        FluentCase("Hello", expected_trajectory=[], max_tokens=200, id="greeting"),
    ],
    num_runs=2,
    gate=Gate(min_tag_pass_rate={"orders": 1.0}),
)

if __name__ == "__main__":
    print(suite.run_sync())
