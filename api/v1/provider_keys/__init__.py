"""Keys of model providers."""
