"""The tickets that come with the demo."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Ticket:
    """A message of a customer.

    Attributes:
        id: Such as ``T07``.
        sender: E-mail address.
        product: What it is about.
        subject: Subject line.
        body: What the customer wrote.
        expected: The category a person would file it under.
    """

    id: str
    sender: str
    product: str
    subject: str
    body: str
    expected: str

    @property
    def text(self) -> str:
        """The ticket as the support desk gets it."""
        return (
            f"Ticket: {self.id}\nFrom: {self.sender}\nProduct: {self.product}\n"
            f"Subject: {self.subject}\n\n{self.body}"
        )


def tickets() -> tuple[Ticket, ...]:
    """All tickets, in order of their ids."""
    text = files("adk_fluent.demo").joinpath("tickets.json").read_text("utf-8")
    return tuple(Ticket(**row) for row in json.loads(text))
