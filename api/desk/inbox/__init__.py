"""The list of approvals."""
