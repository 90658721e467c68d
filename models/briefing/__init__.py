"""What people are told beside an approval: what is at stake, why the agent asks, who decides, what was decided
before, and what came of it.

    precedent  what people decided about calls like it
    arguments  the call's arguments as its tool declares them
    panel      who has voted, how many are missing, and who may still vote
    stakes     what the call can do: its effect, how often it runs, its secrets
    reasons    the agent's last words, and the request
    changes    what differs since people were asked
    outcome    what came of a call

Each reads a bounded number of rows, and decides nothing.
"""
