"""Policies: the rules in force, a call to try, a change to simulate before it is saved, and grants."""
