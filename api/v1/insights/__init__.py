"""Insights: how often people are asked, what they decide, and how long that takes."""
