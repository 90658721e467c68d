"""What decisions cause, and what happens if nobody decides."""
