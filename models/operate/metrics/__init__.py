"""Metrics of the whole installation: what they are, how sums are added up from rows, and how they are read."""
