"""Tools that workers run: the registry and the built-in six. Knows nothing of approvals, nor of any row."""
