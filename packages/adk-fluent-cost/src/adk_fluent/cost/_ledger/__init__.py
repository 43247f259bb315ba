"""Ledgers: what is spent of budgets, and what calls under way have reserved."""
