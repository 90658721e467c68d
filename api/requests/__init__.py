"""What may be asked: one pydantic model per body and per query, by noun. Nothing unknown passes, nothing is guessed."""
