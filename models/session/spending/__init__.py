"""What sessions have spent, and how much the spend limits leave."""
