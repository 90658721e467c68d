"""The next step of a run, and what a run that rests waits for."""
