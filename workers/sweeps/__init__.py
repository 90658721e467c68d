"""The sweeps: bounded, idempotent repairs. Each reads ids, then acts on one session at a time. `workers.schedule` lists them.

Each returns what it did in words, which are empty if there was nothing to do.
"""
