"""Threads: the conversations of a session, each with one model. Every session has a thread of its own."""
