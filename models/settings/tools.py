"""Settings of tools: shells, workdirs, MCP servers and a team's toolsets."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import BaseSettings

STORAGE_ID = Path(".storage", "id")
"""The file below `workdir_root` with the id of its storage, by which a session knows where its files are."""


class ToolSettings(BaseSettings):
    """A part of `Settings`."""

    workdir_root: Path = Path(".assent/workdirs")
    shell: Literal["bubblewrap", "bare"] = "bubblewrap"
    """`bubblewrap` refuses to run a shell where bubblewrap is missing; `bare`, in development only, has no sandbox."""
    announce_seconds: float = Field(60, gt=0, le=120)
    """How often a tools worker announces its toolsets, and lists the tools of the operator's MCP servers."""
    tool_seconds: float = 120
    """Time limit of one tool call, unless the tool sets its own."""
    client_tool_seconds: float = Field(86_400, gt=0)
    """How long a client may take for a call that it runs, unless the tool sets its own limit; then the run continues without it."""
    tool_output_bytes: int = 100_000
    """Size of one result that the model sees at most."""
    tool_result_bytes: int = Field(10_000_000, ge=10_000, le=100_000_000)
    """Size of one result that is stored at most, to be read in parts."""
    workdir_bytes: int = Field(1 << 30, ge=1_000_000)
    """Disk space of a session's files. A shell command can exceed it by the amount that it writes within half a second."""
    workdir_files: int = Field(100_000, ge=100)
    """Files and directories of a session."""
    workdir_free_bytes: int = Field(500_000_000, ge=0)
    """Space that must stay free on the disk of the workdirs. Below it, shell commands are ended and files are not written."""
    shell_network: bool = False
    """Gives shell commands the whole network, including the services on this machine's loopback."""
    shell_memory_bytes: int = Field(4 << 30, ge=64 << 20)
    """Memory of one shell command, all its processes together."""
    shell_processes: int = Field(256, ge=16)
    """Processes and threads of one shell command at a time."""
    shell_temporary_bytes: int = Field(256 << 20, ge=1 << 20)
    """Size of a shell command's own `/tmp`, which is memory; `/dev/shm` may take the same again."""
    shell_grace_seconds: float = Field(2, ge=0, le=60)
    """Time between SIGTERM and SIGKILL for a shell command that is cancelled or out of time."""
    mcp_config: Path | None = None
    """The operator's MCP servers: a file in the format `{"mcpServers": {...}}`."""
    mcp_listing_seconds: float = 60
    """How long a listing of an MCP server's tools is used before the next."""
    mcp_connect_seconds: float = Field(30, gt=0)
    """How long an MCP server may take to start or be reached, and again to list its tools."""
    mcp_idle_seconds: float = 60
    """After this time without a call, an MCP server is disconnected; one that Assent started is ended."""
    mcp_response_bytes: int = Field(20_000_000, ge=1)
    """The longest response of an MCP server that is used, in bytes. Over HTTP no more is read."""
    toolsets: str = ""
    """Toolsets beside those of installed packages (entry points `assent.toolsets`): `module:attribute`, with spaces between.
    `module:attribute@PYTHON` names the file of the Python interpreter that runs the toolset, by default the worker's."""
    toolset_path: str = "."
    """Folders of a team's code, which only the processes of toolsets have on their module path, with `:` between."""
    toolset_folder: Path | None = None
    """The current folder of toolsets, and of the operator's MCP servers that Assent starts. By default the worker's."""
    toolset_workspaces: dict[str, list[Annotated[str, Field(pattern=r"^wrkspc_\w+$")]]] = {}
    """The only workspaces that may use an `assent:NAME`, by its name, as JSON: `{"billing": ["wrkspc_..."]}`. To others, a limited
    toolset or MCP server does not exist. One that is not named here is for all."""
