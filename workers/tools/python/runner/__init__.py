"""The process that runs a toolset's functions. It loads these modules as `_assent_runner`, and of Assent only `assent.py` beside.

The modules import each other relatively and nothing else of Assent: a team's package may be called `models` or `workers`.

A protocol beside MCP's keeps two promises that MCP over stdio would break: a call that never began does not become an unknown
outcome, and people see a function's output while it runs. It is also cheap: this process starts in 0.16 s of the processor and 29
MB, and the import of `mcp` alone takes 1.0 s and 65 MB.
"""
