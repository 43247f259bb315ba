"""A tool that a person has to confirm in the middle of a pipeline; an App, which `adk run` finds.

The App is called like its folder: ADK looks for its sessions under the one name or the other.
"""

from __future__ import annotations

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.testing import Call, ScriptedModel, rule


def refund(order: str) -> str:
    """Pay an order back.

    Args:
        order: Its number.
    """
    return f"{order} is paid back"


model = ScriptedModel(
    rules=[
        rule(agent="classify", reply="refund"),
        rule(agent="farewell", reply="Anything else?"),
        rule("is paid back", reply="Done, A1 is paid back."),
        rule("rejected", reply="Then not."),
        rule(agent="clerk", reply=Call("refund", {"order": "A1"})),
    ]
)

classify = Agent("classify").instruct("One word: refund or other?").writes("topic")
clerk = Agent("clerk").instruct("Pay back what is asked for.")
clerk.tool(refund, require_confirmation=True)

farewell = Agent("farewell").instruct("Ask what else there is.")

refunds = (classify >> clerk >> farewell).named("refunds").model(model)

app = refunds.to_app(ExecutionConfig(app_name="refunds", max_llm_calls=20))
