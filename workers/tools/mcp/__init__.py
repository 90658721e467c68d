"""Tools on MCP servers: of the operator's configuration (a command, or a URL), and at URLs that clients give.

| file | what it knows |
|---|---|
| `servers.py` | which servers there are, and how to reach them |
| `launcher.py`, `pipes.py` | a server that is a command: it dies with us |
| `flights.py`, `watched_http.py` | of each request, whether it was sent and whether an answer came |
| `connecting.py`, `unreachable.py` | the protocol's client over either, in the version that the server speaks; why there is none |
| `connections.py` | one thread per process that keeps connections while they are used |
| `listing.py`, `calling.py`, `outcomes.py`, `content.py` | what its tools are; one call of one; what came of it |
"""
