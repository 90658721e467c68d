"""The audit: acts in chains of hashes, signed seals over the chains' heads, and the verification of both."""
