"""Tests that kill a process at each boundary of its work, and look whether anything is lost or done twice."""
