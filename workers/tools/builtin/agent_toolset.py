"""The six tools of the wire's agent toolset, which every tools worker has."""

from workers.tools.builtin.edit import EDIT
from workers.tools.builtin.find import GLOB
from workers.tools.builtin.grep import GREP
from workers.tools.builtin.read import READ
from workers.tools.builtin.shell import BASH
from workers.tools.builtin.write import WRITE

AGENT_TOOLSET = {tool.name: tool for tool in (BASH, READ, WRITE, EDIT, GLOB, GREP)}
"""By name, in the order of listings."""
