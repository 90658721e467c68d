"""The process that runs a toolset's functions. Of Assent it loads only these modules, as `_assent_runner`, and `assent`.

The modules import each other by relative names, because a team's package may be called `models` or `workers`.

The protocol is not MCP. It keeps two promises that MCP over stdio would break: a call that never began does not become an unknown
outcome, and people see a function's output while it runs. It is also cheap: this process starts with 0.16 s of processor
time and 29 MB, and the import of `mcp` alone takes 1.0 s and 65 MB.
"""
