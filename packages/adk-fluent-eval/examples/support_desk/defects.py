"""What can be wrong with the desk."""

from __future__ import annotations

from typing import Final

#: Each defect, and what it makes of the desk.
KINDS: Final = {
    "no_person": "wrong route: the classifier is not told that people may want a person",
    "resets_locked_accounts": "wrong tool: a locked account gets a new password",
    "priority_forgotten": "wrong argument: tickets of angry customers are of normal priority",
    "photo_forgotten": "argument missing: nobody is told that there is a photo",
    "warranty_unchecked": "call missing: nobody looks whether there is a warranty",
    "looks_up_twice": "call too many: the tracker looks an order up again",
    "resets_unverified": "wrong order of calls: the link is sent before the customer is verified",
    "limit_too_high": "bad limit: the desk pays back ten times as much by itself",
    "no_guard": "guard missing: it tries to pay back what is above the limit",
    "no_offline_tracker": "fallback missing: if the carrier is down, so is the desk",
    "ignores_tool_errors": "an error of a tool is taken for an answer",
    "visits_not_counted": "state not written: visits are not counted",
    "confidence_as_text": "wrong type in state: the confidence becomes a percentage for people",
    "mood_dropped": "parallel branch missing: nobody notices that a customer is angry",
    "facts_overwritten": "parallel result lost: two branches write to one key",
    "items_lost": "result of the map lost: the summary has the last order only",
    "endless_review": "loop too long: the draft is never good enough",
    "long_prompt": "too many tokens: the whole catalogue stands in a prompt",
    "forgets_order": "forgets the turn before: agents see the last message only",
    "ticket_unnamed": "the answer does not name the ticket",
    "leaks_note": "the answer tells an internal note",
    "english_only": "wrong language: parcels are tracked in English",
    "email_from_message": "wrong customer: the account is that of the address in the message",
    "cuts_cents": "money is cut to cents where it should be rounded",
    "reads_cards": "messages with the number of a card are answered like others",
}
