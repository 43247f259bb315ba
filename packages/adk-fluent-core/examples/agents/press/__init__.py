"""Refunds; ADK's tools find `app` in `refunds.agent`."""
