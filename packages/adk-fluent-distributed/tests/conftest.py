"""What all tests here share: helpers that are importable, and databases."""

from __future__ import annotations

import itertools
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBERS = itertools.count()


def _provide(name: str) -> None:
    """Make a helper beside this file importable; importlib mode puts nothing on `sys.path`."""
    spec = spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


for helper in ("segmented", "distributed_jobs", "isolated_jobs", "postgres_server"):
    if helper not in sys.modules:
        _provide(helper)
if find_spec("pyarrow") and "codec_values" not in sys.modules:
    _provide("codec_values")


@pytest.fixture(autouse=True)
def no_engine_is_left() -> Iterator[None]:
    """A test that leaves an engine open fails, and not those behind it: there is one a process."""
    yield
    module = sys.modules.get("adk_fluent.distributed._runtime")
    left = None if module is None else module.Runtime._current
    if left is not None:
        left.close()
        pytest.fail(f"the test left the engine of {left.address.shown} open")


@pytest.fixture(scope="session")
def postgres_address() -> Iterator[str]:
    """A server of these tests; without Postgres on this machine, the test is skipped."""
    import postgres_server

    folder = postgres_server.binaries()
    if folder is None:
        pytest.skip(postgres_server.MISSING)
    with postgres_server.running(folder) as address:
        yield address


@pytest.fixture
def postgres(postgres_address: str) -> str:
    """The url of a new database."""
    import psycopg

    name = f"runs{next(_NUMBERS)}"
    with psycopg.connect(f"{postgres_address}/postgres", autocommit=True) as db:
        db.execute(f"create database {name}".encode())
    return f"{postgres_address}/{name}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The url of a new database of either kind; of Postgres with ``--full`` alone."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres")
    return f"sqlite:///{tmp_path / 'runs.sqlite'}"
