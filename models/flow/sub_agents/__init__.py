"""What agents cause to each other: threads, the messages between them, and the reports of sub-agents."""
