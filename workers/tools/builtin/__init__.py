"""The built-in tools: shell, files, git branch, and reading long results."""
