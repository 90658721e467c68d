"""A turn, its reply and what it used."""
