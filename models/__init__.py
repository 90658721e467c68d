"""WHAT IS TRUE: rows, the verbs that change them, the rules that allow it."""

DISTRIBUTION = "assent-server"
"""The name of the package that pip installs. `assent` is the name of the command, and of the module for toolsets."""
