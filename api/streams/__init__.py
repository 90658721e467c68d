"""Streams of events: one client's stream, its reader, and the hub that wakes all readers of a process."""
