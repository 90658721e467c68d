"""Values in, values out: no I/O, nothing but the standard library and what is as pure (rfc8785, re2, jsonpointer, tree-sitter)."""
