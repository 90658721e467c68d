"""What workers cause: the claims of turns and calls, and how their attempts end."""
