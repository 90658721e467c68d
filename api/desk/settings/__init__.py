"""What admins set: people, keys, channels, webhooks, limits."""
