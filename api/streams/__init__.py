"""Streams of events: the stream of one client, the reader of the stream, and the hub that wakes all readers of a process."""
