"""Tests of the example toolset."""
