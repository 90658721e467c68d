"""WHAT HAPPENS: moments in time, and the outside world. Tasks are shallow; the verbs live on the rows in `models`."""
