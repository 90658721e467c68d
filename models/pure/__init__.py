"""Rules and values without I/O. Imports the standard library, and libraries that do no I/O either (rfc8785, re2, tree-sitter)."""
