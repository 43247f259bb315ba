"""What DBOS asks of SQLite is there, whatever the version of SQLite."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, text

from adk_fluent.distributed._database import Address, ready_for_dbos

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

#: The default of DBOS's columns on Python 3.12 and newer.
MADE = "create table jobs (id integer, made integer not null default (unixepoch('subsec') * 1000))"


def test_a_sqlite_before_3_42_counts_milliseconds_in_files_of_dbos_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(file: Path, what: str) -> Any:
        engine = create_engine(f"sqlite:///{file}")
        try:
            with engine.begin() as db:
                return db.execute(text(what)).scalar()
        finally:
            engine.dispose()

    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
    address = Address.of(f"sqlite:///{tmp_path}/sub/../runs.sqlite")
    ready_for_dbos(address)
    runs, others = tmp_path / "runs.sqlite", tmp_path / "others.sqlite"

    assert asked(runs, "pragma journal_mode") == "wal"  # readers wait for no writer
    before = time.time() * 1000
    with_default = create_engine(f"sqlite:///{runs}")
    with with_default.begin() as db:
        db.execute(text(MADE))
        db.execute(text("insert into jobs (id) values (1)"))
        made = db.execute(text("select made from jobs")).scalar_one()
    with_default.dispose()
    assert before <= made <= time.time() * 1000
    assert asked(runs, "select unixepoch('2026-01-02')") is None  # ours answers
    assert asked(others, "select unixepoch('1970-01-02')") == 86_400  # SQLite's own answers
