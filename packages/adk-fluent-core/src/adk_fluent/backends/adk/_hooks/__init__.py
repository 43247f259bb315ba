"""Middlewares: where they stand around runs, steps, model calls and tool calls."""
