"""How the inbox shows values: pure functions from rows and JSON to what a template prints. No I/O."""
