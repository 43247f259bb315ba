"""All programs of the suite."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from adk_fluent.testing.conformance._agent_tools import agent_tools
from adk_fluent.testing.conformance._answers import answers, streamed
from adk_fluent.testing.conformance._configured import configured, of_layers
from adk_fluent.testing.conformance._confirmations import confirmations
from adk_fluent.testing.conformance._contracts import contracts
from adk_fluent.testing.conformance._delegates import delegates
from adk_fluent.testing.conformance._fallbacks import fallbacks
from adk_fluent.testing.conformance._gates import gates
from adk_fluent.testing.conformance._histories import histories
from adk_fluent.testing.conformance._long_running import long_running
from adk_fluent.testing.conformance._loops import loops
from adk_fluent.testing.conformance._maps import maps
from adk_fluent.testing.conformance._matrix import matrix
from adk_fluent.testing.conformance._middlewares import middlewares
from adk_fluent.testing.conformance._parallels import parallels
from adk_fluent.testing.conformance._predicates import predicates
from adk_fluent.testing.conformance._races import races
from adk_fluent.testing.conformance._resources import resources
from adk_fluent.testing.conformance._resumed import resumed
from adk_fluent.testing.conformance._routes import routes
from adk_fluent.testing.conformance._sessions import sessions
from adk_fluent.testing.conformance._timeouts import timeouts
from adk_fluent.testing.conformance._together import together
from adk_fluent.testing.conformance._tools import tools
from adk_fluent.testing.conformance._transfers import transfers
from adk_fluent.testing.conformance._transforms import transforms
from adk_fluent.testing.conformance._values import keys, values
from adk_fluent.testing.conformance._writes import writes

if TYPE_CHECKING:
    from adk_fluent.testing.conformance._program import Program

_ALL = (
    *(matrix, values, keys, writes, transforms, sessions),
    *(predicates, routes, loops, timeouts, transfers),
    *(parallels, races, fallbacks, together, maps),
    *(gates, resumed, confirmations, long_running),
    *(delegates, agent_tools, tools, contracts),
    *(answers, streamed, histories, resources, middlewares, configured, of_layers),
)


def programs(*capabilities: str) -> list[Program]:
    """The programs of the suite.

    Args:
        *capabilities: Only those that ask for one of these; without any, all of them.
    """
    return [each for each in _every() if not capabilities or each.capability in capabilities]


@cache
def _every() -> tuple[Program, ...]:
    return tuple(chain.from_iterable(make() for make in _ALL))
