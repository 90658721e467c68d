"""The six tools of the wire's agent toolset, which every tools worker has."""

from dataclasses import replace

from workers.tools.builtin.edit import EDIT
from workers.tools.builtin.find import GLOB
from workers.tools.builtin.grep import GREP
from workers.tools.builtin.read import READ
from workers.tools.builtin.shell import BASH
from workers.tools.builtin.write import WRITE

AGENT_TOOLSET = {tool.name: tool for tool in (BASH, READ, WRITE, EDIT, GLOB, GREP)}
"""By name, in the order of listings."""
_COMMON = {name: schema for name, schema in BASH.input_schema["properties"].items() if name != "working_directory"}
HOSTED_TOOLSET = {**AGENT_TOOLSET, "bash": replace(BASH, input_schema={**BASH.input_schema, "properties": _COMMON})}
"""The same tools as a client's own worker runs them: it would ignore the directory of a command, and run it elsewhere."""
