"""An approval: the question, who may decide it, the votes, the decision and the grants."""
