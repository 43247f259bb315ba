"""The conformance suite on ADK's own Gemini class: each agent's answer comes over HTTP.

Every twelfth program runs by default, all of them with ``--full``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import ir
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.ir import AgentNode, ExecutionConfig, Node, Ref
from adk_fluent.testing import GeminiEmulator, Script, conformance, reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.backends.adk import Compiled
    from adk_fluent.protocol import Backend
    from adk_fluent.testing import Asked, Reply
    from adk_fluent.testing.conformance import Program, Subject

pytestmark = [
    pytest.mark.adk,
    # 1.x says so of streamed text
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

#: In these an agent raises what a model class would, or is still at work when its caller is gone:
#: nothing that a server can do.
ELSEWHERE = re.compile(
    "(failing|cancelled|timed out|closed early)/|race|first_complete"
    "|timeout/of the whole run|the first failure is raised|when all fail"
)


class Scripts:
    """Follows the scripts of the agents that were compiled last, by their names."""

    def __init__(self) -> None:
        self.of: dict[str, Script] = {}

    async def answer(self, asked: Asked) -> Reply:
        made = await self.of[asked.agent or ""].answer(asked)
        # an agent that is made good by another one: a server can fail, too
        return made if made.raises is None else reply(status=500, error_message=str(made.raises))


@pytest.fixture(scope="module", autouse=True)
def served() -> Iterator[None]:
    with GeminiEmulator(default=_scripts.answer) as emulator:
        _emulators.append(emulator)
        yield
    _emulators.clear()


_scripts = Scripts()
_emulators: list[GeminiEmulator] = []


class OverHttp(ADKBackend):
    """ADK, with a model of Google's for each agent that brings a script."""

    def compile(self, node: Node, config: ExecutionConfig | None = None) -> Compiled:
        return super().compile(ir.map(node, self._served), config)

    def _served(self, node: Node) -> Node:
        if not isinstance(node, AgentNode) or node.mock is None:
            return node
        _scripts.of[node.name] = node.mock.value
        return node.replace(mock=None, model=Ref(_emulators[-1].model()))


def _subject() -> Subject:
    def backend() -> OverHttp:
        _scripts.of.clear()
        return OverHttp()

    def reopen(before: Backend[Any]) -> OverHttp:
        assert isinstance(before, OverHttp)
        return OverHttp(before.session_service)

    whole = conformance.adk_subject()
    return replace(whole, name="gemini", backend=backend, reopen=reopen)


def _programs() -> Iterator[Program]:
    for program in conformance.programs():
        if not ELSEWHERE.search(program.id):
            yield program


_SOME = 12  # one in so many runs by default
TestGemini = conformance.as_pytest(_subject, only=islice(_programs(), 0, None, _SOME))
TestTheRest = pytest.mark.full(
    conformance.as_pytest(_subject, only=(each for n, each in enumerate(_programs()) if n % _SOME))
)
