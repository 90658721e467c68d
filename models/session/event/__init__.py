"""Events: the row, the types of their fields, and the events of a session itself."""
