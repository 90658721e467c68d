"""The machine's verdict on a tool call: which tools an agent has, and which rule decides."""
