"""An MCP server over pipes that starts at once: the standard library only, the versions of the protocol with a handshake only."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def call(name: str, file: str = "", word: str = "") -> str:
    if name == "pid":
        return str(os.getpid())
    if name == "echo":
        return word
    if name == "parent":  # of a process that would outlive it
        child = subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        Path(file).write_text(str(child.pid))
    elif name == "stay":
        Path(file).write_text(str(os.getpid()))
        time.sleep(600)
    elif name == "die":
        with Path(file).open("a") as effects:
            effects.write("effect\n")
        os._exit(7)
    elif name == "long":
        return "x" * 60_000
    elif name == "deaf":  # from now on
        os.close(0)
        Path(file).touch()
        time.sleep(600)
    return name


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["method"] == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "small", "version": "1"}}
        return {"result": {"protocolVersion": "2025-11-25", **about}}
    if request["method"] == "tools/call":
        if request["params"]["name"] == "odd":
            return {"error": {"code": -32000, "message": "odd"}}  # the SDK's code for a connection that was lost
        text = call(request["params"]["name"], **request["params"]["arguments"])
        return {"result": {"content": [{"type": "text", "text": text}]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


print("this is not a message", flush=True)  # noqa: T201 - some do
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}) + "\n")
        sys.stdout.flush()
