"""Tests that break, cut or freeze what real processes depend on."""
