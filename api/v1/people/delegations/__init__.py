"""Delegations."""
