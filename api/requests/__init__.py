"""The API's requests: one pydantic model per body and per query, in files by noun. Unknown fields are refused."""
