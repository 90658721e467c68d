"""Assent on a phone: it can be installed, and notifications come by push."""
