"""What a model's tokens cost."""
