"""Approvals, the decisions on them, and the list of those that wait for a person."""
