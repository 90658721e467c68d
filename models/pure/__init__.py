"""Values in, values out: no I/O, nothing but the standard library (and rfc8785, which is as pure)."""
