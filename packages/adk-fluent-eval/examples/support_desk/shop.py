"""What the desk works on: a shop with its orders and customers, and the tools that reach them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK resolves it

#: What a tool answers; one that cannot help says why under ``error``.
Result = dict[str, Any]

_CENT: Final = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Order:
    """An order.

    Attributes:
        customer: E-mail address of whom it is for.
        item: What was bought.
        price: EUR, with 19 percent VAT in it.
        status: ``shipped`` or ``delivered``.
        place: Where the carrier has seen its parcel last; empty if it never has.
        day: When the parcel arrives.
        note: What colleagues have noted; no matter for customers.
        opened: Whether it was opened, which costs 10 percent when it is paid back.
        returnable: Whether it can be paid back at all.
    """

    customer: str
    item: str
    price: Decimal
    status: str = "delivered"
    place: str = ""
    day: str = ""
    note: str = ""
    opened: bool = False
    returnable: bool = True


ANN, BEN = "ann@example.com", "ben@example.com"

ORDERS: Final = {
    "A100": Order(ANN, "keyboard", Decimal("49.90"), "shipped", "Cologne", "Monday"),
    "A200": Order(ANN, "lamp", Decimal("19.99")),
    "A300": Order(BEN, "headphones", Decimal("129.00")),
    "A400": Order(ANN, "mug", Decimal("12.50"), "shipped"),
    "A500": Order(
        BEN, "monitor", Decimal("320.00"), "shipped", "Bonn", "Friday", "sends a lot back"
    ),
    "A600": Order(ANN, "gift card", Decimal("25.00"), returnable=False),
    "A700": Order(BEN, "chair", Decimal("35.55"), opened=True),
}

#: Months of warranty that are left, by serial number.
WARRANTIES: Final = {"SN-1001": 8, "SN-2002": 0}

ARTICLES: Final = {
    "battery": "Charge it for an hour and start it again.",
    "bluetooth": "Hold the button for five seconds to pair it.",
    "opening": "We are open from nine to five.",
    "shipping": "Shipping is free from 30 EUR.",
}


class Shop:
    """A shop, whose methods are the tools of the desk.

    What happens in a conversation stands in its state, so that one shop serves all: ``ticket`` and
    ``tickets``, ``verified`` (an address) and ``paid_back`` (orders).

    Args:
        limit: EUR that the desk may pay back by itself; of gold customers it is 2.5 times as much.
        rounding: How amounts are rounded to cents, as the module `decimal` names it.
    """

    def __init__(self, limit: int = 100, rounding: str = ROUND_HALF_UP) -> None:
        self._limit = Decimal(limit)
        self._rounding = rounding

    def limit_of(self, tier: str | None) -> float:
        """EUR that the desk may pay back to a customer."""
        return float(self._limit * Decimal("2.5") if tier == "gold" else self._limit)

    # --- orders --------------------------------------------------------------------------------

    def look_up_order(self, order: str) -> Result:
        """Look up an order by its number, such as A100."""
        found = ORDERS.get(order)
        if found is None:
            return {"error": f"there is no order {order}"}
        result: Result = {"order": order, "item": found.item, "status": found.status}
        return result | ({"note": found.note} if found.note else {})

    def track_parcel(self, order: str) -> Result:
        """Ask the carrier where the parcel of an order is."""
        found = ORDERS.get(order)
        if found is None or not found.place:
            return {"error": f"the carrier does not know the parcel of {order}"}
        return {"order": order, "place": found.place, "day": found.day}

    def list_orders(self, email: str) -> Result:
        """List the orders of a customer."""
        return {"orders": [name for name, each in ORDERS.items() if each.customer == email]}

    # --- money ---------------------------------------------------------------------------------

    def find_invoice(self, order: str) -> Result:
        """Find the invoice of an order."""
        found = ORDERS.get(order)
        if found is None:
            return {"error": f"there is no order {order}"}
        vat = self._cents(found.price * 19 / 119)
        return {"invoice": f"I{order[1:]}", "total": float(found.price), "vat": vat}

    def list_invoices(self, email: str) -> Result:
        """Add up the invoices of a customer."""
        prices = [each.price for each in ORDERS.values() if each.customer == email]
        return {"invoices": len(prices), "total": float(sum(prices, Decimal()))}

    def quote_refund(self, order: str, tool_context: ToolContext) -> Result:
        """Work out what can be paid back for an order."""
        found = ORDERS.get(order)
        if found is None:
            return {"error": f"there is no order {order}"}
        if not found.returnable:
            return {"error": f"a {found.item} cannot be paid back"}
        if order in tool_context.state.get("paid_back", []):
            return {"error": f"{order} was paid back already"}
        share = Decimal("0.9") if found.opened else Decimal(1)
        return {"order": order, "amount": self._cents(found.price * share)}

    def process_refund(self, order: str, amount: float, tool_context: ToolContext) -> Result:
        """Pay an order back.

        Raises:
            ValueError: It is more than the desk may pay back.
        """
        if amount > self.limit_of(tool_context.state.get("user:tier")):
            raise ValueError(f"{amount} EUR is above the limit")
        tool_context.state["paid_back"] = [*tool_context.state.get("paid_back", []), order]
        return {"receipt": f"R{order[1:]}", "order": order, "amount": amount}

    def _cents(self, amount: Decimal) -> float:
        return float(amount.quantize(_CENT, self._rounding))

    # --- accounts ------------------------------------------------------------------------------

    def verify_identity(self, email: str, tool_context: ToolContext) -> Result:
        """Verify that the customer is who they say."""
        if email not in {ANN, BEN}:
            return {"error": f"nobody is called {email}"}
        tool_context.state["verified"] = email
        return {"email": email, "verified": True}

    def reset_password(self, email: str, tool_context: ToolContext) -> Result:
        """Send a link for a new password to a customer who was verified."""
        if email != tool_context.state.get("verified"):
            return {"error": f"{email} is not verified"}
        return {"email": email, "sent": True}

    def unlock_account(self, email: str, tool_context: ToolContext) -> Result:
        """Unlock the account of a customer who was verified."""
        if email != tool_context.state.get("verified"):
            return {"error": f"{email} is not verified"}
        return {"email": email, "unlocked": True}

    # --- help ----------------------------------------------------------------------------------

    def search_docs(self, query: str) -> Result:
        """Search the help articles for a word."""
        return {"found": [text for word, text in ARTICLES.items() if word == query]}

    def check_warranty(self, serial: str) -> Result:
        """Look how many months of warranty a serial number has left."""
        months = WARRANTIES.get(serial)
        if months is None:
            return {"error": f"there is no serial number {serial}"}
        return {"serial": serial, "months": months}

    def create_ticket(
        self, kind: str, priority: str, tool_context: ToolContext, photo: bool = False
    ) -> Result:
        """Open a ticket for a colleague, and remember its number.

        Args:
            kind: What it is about.
            priority: high or normal.
            tool_context: ADK's.
            photo: Whether the customer has sent a photo.
        """
        tickets = tool_context.state.get("tickets", 1000) + 1
        number = f"T-{tickets}"
        tool_context.state["tickets"] = tickets
        tool_context.state["ticket"] = number
        return {"ticket": number, "kind": kind, "priority": priority, "photo": photo}
