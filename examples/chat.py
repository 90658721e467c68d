"""Talk to an agent by OpenAI's SDK, and decide here what it may do.

pip install openai
export ASSENT_URL=... ASSENT_API_KEY=...    # a key with the scopes sessions, read and approvals
python -m examples.chat "List the files."
"""

import os
import sys
from collections.abc import Callable
from typing import Any

from openai import OpenAI

from examples.decisions import asks, decision


def talk(client: OpenAI, model: str, text: str, decide: Callable[[str, dict[str, Any]], dict[str, Any]]) -> str:
    """Send a message, decide what the agent asks for by `decide`, and return the agent's last text."""
    messages: list[Any] = [{"role": "user", "content": text}]
    metadata = {"approvals": "tools"}
    while True:
        with client.chat.completions.stream(model=model, messages=messages, metadata=metadata) as stream:
            for event in stream:
                if event.type == "content.delta":
                    sys.stdout.write(event.delta)
                    sys.stdout.flush()
                elif event.type == "chunk":
                    metadata["session_id"] = (event.chunk.model_extra or {}).get("assent", metadata)["session_id"]
            message = stream.get_final_completion().choices[0].message
        messages.append(message)
        if not (questions := asks(message)):
            return message.content or ""
        messages += [decide(call_id, question) for call_id, question in questions.items()]


def by_keyboard(call_id: str, question: dict[str, Any]) -> dict[str, Any]:
    """Return the decision that a person types."""
    chosen = input(f"{question['message']}\n{', '.join(question['options'])}? ").strip()
    return decision(call_id, "approve", scope=chosen) if chosen in {"once", "session", "always"} else decision(call_id, "deny")


if __name__ == "__main__":
    sdk = OpenAI(base_url=f"{os.environ['ASSENT_URL']}/v1", api_key=os.environ["ASSENT_API_KEY"])
    talk(sdk, next(iter(sdk.models.list())).id, " ".join(sys.argv[1:]), by_keyboard)
