"""The process that runs a toolset's functions. It loads these modules as `_assent_runner`, and of Assent only `assent.py` beside.

The modules import each other relatively and nothing else of Assent: a team's package may be called `models` or `workers`.

The second protocol beside MCP keeps three promises that MCP's stdio transport would break: a call that never began is told from a
call with an unknown outcome, a function's output is shown while the function runs, and a process starts without the import of
`mcp` (1.4 s and 60 MB on one core; this process takes 0.3 s and 40 MB).
"""
