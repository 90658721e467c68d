"""Tools on MCP servers: those of the operator's configuration (a command or a URL), and those at URLs that clients name.

| file | contents |
|---|---|
| `servers.py` | the servers, and how to reach them |
| `links.py`, `http_client.py` | the delivery of each request: did it leave, did a response come |
| `connecting.py`, `unreachable.py` | the SDK's client session over HTTP or pipes; the reason why there is none |
| `connections.py` | a thread per process that keeps connections between calls |
| `listing.py` | the tools of a server |
| `calling.py`, `outcomes.py`, `content.py` | one call, its outcome, and the content of its result |
"""
