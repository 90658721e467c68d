"""Pure functions that turn rows and JSON into values that a template prints. No I/O."""
