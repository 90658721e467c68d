"""One approval: its card, and what decides it."""
