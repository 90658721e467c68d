"""The machine's answer to a tool call: which tools an agent has, and which rule decides."""
