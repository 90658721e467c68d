"""People: who they are, what they may do in a workspace, and how they sign in."""
