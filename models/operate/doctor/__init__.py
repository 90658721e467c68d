"""What `assent doctor` finds in the rows: sessions whose rows contradict each other, and work that nobody does."""
