"""What clients cause: sessions, messages, and changes of a session."""
