"""A mark for pytest: the test's runs are recorded once, and replayed from then on.

::

    @pytest.mark.recording("recordings/order.json", mode="once")
    def test_order():
        assert pipeline.ask("Where is A1?") == "On its way."
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

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
    around: Any = nullcontext()
    try:
        around, item.stash[_AFTER] = _opened(item, mark)
    except Exception as error:  # noqa: BLE001  # raised where it fails the test
        item.stash[_AFTER] = error
    with around:
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test whose mark is wrong, or that left something unused."""
    after = item.stash.get(_AFTER, None)
    if isinstance(after, Exception):
        raise after
    result = yield
    if after is not None:
        after()
    return result


def _opened(item: pytest.Item, mark: pytest.Mark) -> tuple[Any, Callable[[], None] | None]:
    """What records or replays a marked test, and what is done when it has passed, if anything.

    Raises:
        UsageError: The mark is wrong.
        RecordingFileError: The file cannot be read.
    """
    from adk_fluent.debug import Recorder, ReplayerBackend  # noqa: PLC0415  # few tests need it
    from adk_fluent.errors import UsageError  # noqa: PLC0415  # the same

    options: dict[str, Any] = {"mode": "none", "allow_unused": False, **mark.kwargs}
    mode, allowed = options.pop("mode"), options.pop("allow_unused")
    mode = item.config.getoption("--record-mode") or mode
    fault = ""
    if len(mark.args) != 1 or not isinstance(mark.args[0], str | Path):
        fault = "takes the path of one file"
    elif mode not in _MODES:
        fault = f"has no mode {mode!r}"
    elif unknown := options.keys() - {"tools", "redact"}:
        fault = f"takes no {min(unknown)!r}"
    if fault:
        raise UsageError(f"the mark `recording` {fault}", node=item.name, help=_MARK)
    file = item.path.parent / mark.args[0]
    if mode == "rewrite" or (mode != "none" and not file.exists()):
        recorder = Recorder(redact=options.get("redact"))
        return recorder, partial(recorder.save, file)
    if mode != "new":
        backend = ReplayerBackend(file, **options)
        return backend, None if allowed else backend.check_unused

    backend = ReplayerBackend(file, "live_then_record", **options)

    def save_what_is_new() -> None:
        if backend.missed:
            backend.recorded.save(file)

    return backend, save_what_is_new


#: What is done when a test has passed, or what is wrong with its mark or file.
_AFTER: Final = pytest.StashKey["Exception | Callable[[], None] | None"]()
