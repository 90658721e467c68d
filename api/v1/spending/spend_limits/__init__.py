"""Spend limits."""
