"""Events of sessions: sending, listing and streaming them."""
