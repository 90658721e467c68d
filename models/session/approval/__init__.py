"""An approval: the question, who may answer it, the votes, the decision and the grants."""
