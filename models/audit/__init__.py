"""The audit: acts in chains of hashes, seals over their heads, and verifying both."""
