"""The audit: acts, seals and their verification."""
