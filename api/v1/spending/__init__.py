"""What sessions consume, and the limits of it."""
