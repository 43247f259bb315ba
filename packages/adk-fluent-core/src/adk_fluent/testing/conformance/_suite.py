"""The suite as tests of pytest."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from adk_fluent.testing.conformance._check import check
from adk_fluent.testing.conformance._programs import programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adk_fluent.testing.conformance._program import Program
    from adk_fluent.testing.conformance._subject import Subject


def as_pytest(
    subject: Subject | Callable[[], Subject], only: Iterable[Program] | None = None
) -> type:
    """A class of tests, one a program; pytest finds it by a name that begins with ``Test``.

    The tests share an event loop. It needs pytest.

    Example:
        >>> from adk_fluent.testing import MockBackend, conformance
        >>> subject = conformance.Subject(name="mine", backend=MockBackend)
        >>> TestMine = conformance.as_pytest(subject)

    Args:
        subject: What is tested, or what makes it when the first test runs.
        only: The programs; None is all of them.
    """
    import pytest  # noqa: PLC0415  # only tests have it

    every = list(programs() if only is None else only)

    class TestConformance:
        _loop: ClassVar[asyncio.Runner]
        _subject: ClassVar[Subject]

        @classmethod
        def setup_class(cls) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()  # clients of earlier tests close in whatever loop runs, or never
            cls._loop = asyncio.Runner()
            cls._subject = subject() if callable(subject) else subject

        @classmethod
        def teardown_class(cls) -> None:
            cls._loop.close()

        @pytest.mark.parametrize("program", every, ids=str)
        def test_program(self, program: Program) -> None:
            found = self._loop.run(_checked(program, self._subject))
            if found:
                pytest.fail("\n".join([program.id, *found]), pytrace=False)

    return TestConformance


async def _checked(program: Program, subject: Subject) -> list[str]:
    found: Any = await check(program, subject)
    return [str(each) for each in found]
