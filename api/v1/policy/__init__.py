"""Policies and the settings of approvals, and the routes of the workspace's own."""
