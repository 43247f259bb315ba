"""Names that ADK and adk-fluent keep: everybody who looks at names says the same.

The ADK backend does, too: `test_a_name_adk_does_not_take_is_refused`.
"""

from __future__ import annotations

import pytest

from adk_fluent import Agent, FanOut, Pipeline, ir, tap
from adk_fluent.contracts import check_all
from adk_fluent.errors import BuildError

KEPT = ["user", "START", "__START__", "_adk", "_adk_x", "_adk_fluent_x"]
FREE = ["users", "start", "START_", "adk_x", "x_adk", "__start__"]


@pytest.mark.parametrize("name", KEPT)
def test_a_name_that_is_kept_is_refused_everywhere(name: str) -> None:
    assert ir.why_reserved(name)
    for make in (Agent, Pipeline, FanOut, Agent("a").named, (Agent("a") >> Agent("b")).named):
        with pytest.raises(BuildError, match=rf"^'{name}' cannot name an? "):
            make(name)
    for node in (ir.AgentNode(name), ir.SequenceNode(name, (ir.AgentNode("a"),))):
        assert [violation.rule for violation in ir.verify(node)] == ["named"]
        for root in (node, ir.SequenceNode("main", (ir.AgentNode("b"), node))):
            assert [finding.node for finding in check_all(root).errors] == [name]


@pytest.mark.parametrize("name", FREE)
def test_a_name_that_is_free_is_free_everywhere(name: str) -> None:
    assert ir.why_reserved(name) is None
    root = (Agent(name) >> Agent("a")).named(f"{name}_too").build()
    assert ir.verify(root) == ()
    assert check_all(root).ok


def test_a_function_that_is_called_so_is_a_step_like_others() -> None:
    def user(state: object) -> None:
        """Somebody's function."""

    desk = Agent("a") >> user >> tap(user)
    assert [node.name for node in desk.build().children] == ["a", "step", "tap"]
    assert ir.verify(desk.build()) == ()
    assert desk.check().ok
