"""The page of insights: how often agents ask, how people decide, and what it costs."""
