"""A mark for pytest: the test's runs are recorded once, and replayed from then on.

::

    @pytest.mark.recording("recordings/order.json", mode="once")
    async def test_order():
        assert await pipeline.ask_async("Where is A1?") == "On its way."
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

__all__: Final[list[str]] = []  # its hooks are pytest's, not for importing

_MODES: Final = ("none", "once", "new", "rewrite")
_MARK: Final = (
    "recording(path, mode='none', allow_unused=False, tools='replay', redact=None): the test's runs"
    " are replayed from a recording. mode: 'none' replays only, 'once' records if there is no file,"
    " 'new' does live what was not recorded and records it, 'rewrite' records each time."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--record-mode``."""
    parser.getgroup("adk-fluent").addoption(
        "--record-mode",
        choices=_MODES,
        default=None,
        help="mode of all tests with the mark `recording`, whatever the mark says",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", _MARK)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Record or replay what a marked test runs, its fixtures included."""
    mark = item.get_closest_marker("recording")
    if mark is None:
        return (yield)
    block = _Block(item, mark)
    item.stash[_BLOCK] = block
    with block.around():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test whose mark is wrong, or that left something unused."""
    block = item.stash.get(_BLOCK, None)
    if block is None:
        return (yield)
    block.check()
    result = yield
    block.finish()
    return result


class _Block:
    """What a marked test runs.

    Args:
        item: The test.
        mark: Its mark.
    """

    def __init__(self, item: pytest.Item, mark: pytest.Mark) -> None:
        self._item = item
        self._options: dict[str, Any] = dict(mark.kwargs)
        self._args: tuple[Any, ...] = mark.args
        self._mode: Any = item.config.getoption("--record-mode") or self._options.pop(
            "mode", "none"
        )
        self._options.pop("mode", None)
        self._allowed = self._options.pop("allow_unused", False)
        self._error: Exception | None = None
        self._recorder: Any = None
        self._backend: Any = None
        self._file = Path()

    @contextmanager
    def around(self) -> Generator[None]:
        """Record or replay what is run inside; what is wrong with the mark `check` raises."""
        try:
            made = self._made()
        except Exception as error:  # noqa: BLE001  # raised where it fails the test
            self._error = error
            yield
            return
        with made:
            yield

    def _made(self) -> Any:
        from adk_fluent.debug import Recorder, ReplayerBackend  # noqa: PLC0415  # few tests need it
        from adk_fluent.errors import UsageError  # noqa: PLC0415  # the same

        if len(self._args) != 1 or not isinstance(self._args[0], str | Path):
            raise UsageError(
                "the mark `recording` takes the path of one file",
                node=self._item.name,
                help='@pytest.mark.recording("recordings/order.json")',
            )
        if self._mode not in _MODES:
            raise UsageError(
                f"the mark `recording` has no mode {self._mode!r}",
                node=self._item.name,
                help=f"one of {', '.join(_MODES)}",
            )
        if unknown := self._options.keys() - {"tools", "redact"}:
            raise UsageError(
                f"the mark `recording` takes no {min(unknown)!r}", node=self._item.name, help=_MARK
            )
        self._file = self._item.path.parent / self._args[0]
        records = self._mode == "rewrite" or (
            self._mode in {"once", "new"} and not self._file.exists()
        )
        if records:
            self._recorder = Recorder(redact=self._options.get("redact"))
            return self._recorder
        mismatch: Any = "live_then_record" if self._mode == "new" else "error"
        self._backend = ReplayerBackend(self._file, mismatch, **self._options)
        return self._backend

    def check(self) -> None:
        """Raise what is wrong with the mark or its file."""
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        """Save what was recorded by a test that passed, or see that all was used."""
        if self._recorder is not None:
            self._recorder.save(self._file)
            return
        if self._mode == "new":
            if self._backend.missed:
                self._backend.recorded.save(self._file)
            return
        if not self._allowed:
            self._backend.check_unused()


_BLOCK: Final = pytest.StashKey[_Block]()
