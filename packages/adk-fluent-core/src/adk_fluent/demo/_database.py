"""The support desk's SQLite file, and the tools that work on it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from adk_fluent.demo._tickets import tickets

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SCHEMA = """
CREATE TABLE customers (email TEXT PRIMARY KEY, name TEXT, plan TEXT, since INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, email TEXT, product TEXT, eur REAL, status TEXT);
CREATE TABLE issues (product TEXT, sign TEXT, advice TEXT);
CREATE TABLE replies (ticket TEXT, category TEXT, reply TEXT);
"""
_ISSUES = (
    (
        "Hub",
        "red light",
        "Unplug the hub for ten seconds, then hold the button until it turns blue.",
    ),
    ("Hub", "E42", "Firmware 4.2 restarts in a loop; install 4.3 over USB."),
    ("Hub", "timeout", "Turn off the guest network while pairing."),
    ("Camera", "update", "Install the update over cable; power over Ethernet is too weak."),
    ("Camera", "heiß", "Up to 60 °C is normal; keep it out of the sun."),
    ("Camera", "blurred", "Clean the lens and switch autofocus off and on."),
    ("Sensor", "battery", "Set the report interval back to five minutes."),
    ("Sensor", "offline", "Move the sensor within ten metres of the hub."),
)
_PLANS = ("Basic", "Plus", "Family")


class Database:
    """A SQLite file with customers, orders, known issues and sent replies.

    Args:
        path: Where the file is made; there must be none yet.

    Raises:
        sqlite3.Error: It cannot be made there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        known = [t for t in tickets() if t.sender != "nobody@example.com"]
        with closing(sqlite3.connect(path)) as db, db:
            db.executescript(_SCHEMA)
            db.executemany("INSERT INTO issues VALUES (?, ?, ?)", _ISSUES)
            db.executemany(
                "INSERT INTO customers VALUES (?, ?, ?, ?)",
                [
                    (t.sender, t.sender.partition("@")[0].title(), _PLANS[i % 3], 2018 + i % 8)
                    for i, t in enumerate(known)
                ],
            )
            db.executemany(
                "INSERT INTO orders VALUES (?, ?, ?, ?, ?)",
                [
                    (
                        1001 + i,
                        t.sender,
                        t.product,
                        49.0 + 10 * (i % 5),
                        "delivered" if i % 4 else "returned",
                    )
                    for i, t in enumerate(known)
                ],
            )

    # --- tools: the model calls these -----------------------------------------------------------

    def find_customer(self, email: str) -> dict[str, Any]:
        """Look up a customer by e-mail address.

        Args:
            email: The address the ticket came from.
        """
        rows = self._rows("SELECT name, plan, since FROM customers WHERE email = ?", email)
        return rows[0] if rows else {"error": f"no customer with the address {email}"}

    def recent_orders(self, email: str) -> dict[str, Any]:
        """List a customer's orders, newest first.

        Args:
            email: The address the ticket came from.
        """
        sql = "SELECT id, product, eur, status FROM orders WHERE email = ? ORDER BY id DESC"
        return {"orders": self._rows(sql, email)}

    def known_issues(self, product: str) -> dict[str, Any]:
        """List known issues of a product, each with a sign to recognise it by and advice.

        Args:
            product: Hub, Camera or Sensor.
        """
        return {"issues": self._rows("SELECT sign, advice FROM issues WHERE product = ?", product)}

    # --- steps ----------------------------------------------------------------------------------

    def file_reply(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Store the reply that was approved; the last step of the pipeline."""
        row = (state.get("ticket"), state.get("category"), state.get("reply"))
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute("INSERT INTO replies VALUES (?, ?, ?)", row)
        return {"filed": True}

    def replies(self) -> int:
        """How many replies are stored."""
        return int(self._rows("SELECT count(*) AS n FROM replies")[0]["n"])

    def _rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self.path)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(sql, values)]
