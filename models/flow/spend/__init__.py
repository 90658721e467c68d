"""What a run costs, and the budgets and limits at which it rests."""
