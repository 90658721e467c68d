"""The API's answers as pydantic models. /openapi.json is generated from them, and tests validate every answer against them.

`api.wire` builds the answers. The server does not validate them against these models. The models allow additional fields, as
clients must; the tests do not.
"""
