"""The rows of a session: events, turns, tool calls, attempts, approvals, decisions, grants."""
