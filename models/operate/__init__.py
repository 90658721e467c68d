"""What keeps an installation in order: the rows that sweeps act on, failures, and figures for operators."""
