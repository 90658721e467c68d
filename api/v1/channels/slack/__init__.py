"""Slack's buttons."""
