"""What holds in every test of the workspace, and how much of it runs.

IR is legal after every pass over it. By default each kind of test runs, with few repetitions and
fixed seeds, so that two runs do the same; ``--full`` restores the large counts and what is marked
``full``. ``--seed N`` draws other random programs, ``--examples N`` so many of them.
"""

from __future__ import annotations

import os
import sqlite3
import ssl
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, settings

from adk_fluent.backends import PassList
from adk_fluent.errors import LegalityError
from adk_fluent.ir import Node, assert_legal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Examples of a property that does not say how many it needs: by default, and with ``--full``.
FEW, MANY = 20, 100


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what decides how much runs; tests read `config.option`."""
    group = parser.getgroup("adk-fluent")
    group.addoption(
        "--full", action="store_true", help="run large counts, and the tests marked `full`"
    )
    group.addoption(
        "--seed", type=int, default=0, metavar="N", help="draw these random programs (default: 0)"
    )
    group.addoption(
        "--examples",
        type=int,
        default=None,
        metavar="N",
        help="draw so many random programs for each test over them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis draw what the options say."""
    full, seed = config.option.full, config.option.seed
    # A nested pytest would overwrite the report of this one, or run with its options.
    os.environ.pop("PYTEST_ADDOPTS", None)
    profile = "full" if full else "few"
    settings.register_profile(
        profile,
        max_examples=MANY if full else FEW,
        derandomize=seed == 0,
        database=None,
        deadline=None,  # a busy machine is no failure
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile(profile)
    if seed and config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = seed


def pytest_xdist_auto_num_workers() -> int:
    """Give one worker more than there are cores: some tests wait for servers and clocks."""
    return (os.cpu_count() or 1) + 1


def pytest_report_header(config: pytest.Config) -> str:
    """Say how to draw the same again."""
    return f"random programs: --seed {config.option.seed}{' --full' * config.option.full}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `full`, unless it is asked for."""
    if config.option.full:
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("full") is None]


_RUN: Final[Callable[..., Node]] = getattr(PassList, "__call__")  # noqa: B004, B009  # untyped


def _checked(
    self: PassList[Any], root: Node, cx: Any, verify: Callable[[str, Node], None] | None = None
) -> Node:
    def legal(name: str, made: Node) -> None:
        try:
            assert_legal(made)
        except LegalityError as error:
            error.add_note(f"this is what pass {name!r} returned")
            raise
        if verify is not None:
            verify(name, made)

    return _RUN(self, root, cx, legal)


@pytest.fixture(autouse=True, scope="session")
def legal_after_every_pass() -> Iterator[None]:
    """However a test compiles, by builders, by the command line, or with passes of a layer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PassList, "__call__", _checked)
        yield


@pytest.fixture
def illegal_ir(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test that compiles illegal IR to see what a backend says about it."""
    monkeypatch.setattr(PassList, "__call__", _RUN)


@pytest.fixture(autouse=True, scope="session")
def authorities_are_not_read() -> Iterator[None]:
    """Each client of Google's takes 40 ms to read them all: tests know those that they made."""
    load = ssl.SSLContext.load_verify_locations
    of_all = {"cacert.pem", Path(os.environ.get("SSL_CERT_FILE", "")).name}

    def load_own(context: ssl.SSLContext, cafile: Any = None, *args: Any, **options: Any) -> None:
        if cafile is not None and Path(cafile).name not in of_all:
            load(context, cafile, *args, **options)

    def load_none(_context: ssl.SSLContext) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_verify_locations", load_own)
        patch.setattr(ssl.SSLContext, "set_default_verify_paths", load_none)
        yield


@pytest.fixture(autouse=True, scope="session")
def sqlite_waits_for_no_disk() -> Iterator[None]:
    """What a test writes need not outlive a power failure."""
    connect = sqlite3.connect

    def connected(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        with suppress(sqlite3.Error):  # the test is to find what is wrong with the file
            connection.execute("PRAGMA synchronous=OFF")
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connected)
        yield


@pytest.fixture(autouse=True)
def modules_of_other_tests_are_forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test imports its own ``desk.py``, not that of the test before it."""
    if "tmp_path" not in request.fixturenames:
        yield
        return
    before, path = set(sys.modules), sys.path[:]
    folder = str(request.getfixturevalue("tmp_path"))
    yield
    sys.path[:] = path
    for name in set(sys.modules) - before:
        module = sys.modules[name]  # a directory without an __init__.py has a __path__ alone
        if folder in str([getattr(module, at, "") for at in ("__file__", "__path__")]):
            del sys.modules[name]
