"""An invalid MCP server or toolset is a 400 that names the field, at every route that takes it."""

from pathlib import Path
from typing import Any

import pytest
from doors.served import Caller, bad, good, key, served
from doors.with_servers import BASE, GITHUB, both, custom, of, url
from rows.stage import Stage

ASK = {"type": "always_ask"}


ADDRESSES = [
    ("", "https://"),
    ("example.org", "https://"),
    ("ftp://example.org", "https://"),
    ("HTTPS://example.org", "https://"),
    ("https:/example.org", "https://"),
    ("http://example.org", "must be https://"),
    ("https://", "https://"),
    ("https:///mcp", "no valid host"),
    ("https://.../mcp", "no valid host"),
    ("https://a b.org/", "percent-encoded"),
    ("https://example.org/\n", "percent-encoded"),
    ("https://example.org\\@evil.org/", "percent-encoded"),
    ("https://exämple.org/", "ASCII"),
    ("https://me@example.org/", "no user"),
    ("https://me:secret@example.org/", "no password"),
    ("https://@example.org/", "no user"),
    ("https://example.org/#top", "no fragment"),
    ("https://example.org/#", "no fragment"),
    ("https://example.org:0/", "no valid host"),
    ("https://example.org:99999/", "is not a URL"),
    ("https://[::1/", "is not a URL"),
    ("https://[v1.a]/", "is not a URL"),
    ("https://[fe80::1%eth0]/", "no valid host"),
    ("https://example%2eorg/", "no valid host"),
    ("https://example.org/" + "x" * 2029, "2048"),
    ("assent:", "a-z"),
    ("assent:Billing", "a-z"),
    ("assent:-billing", "a-z"),
    ("assent:billing/x", "a-z"),
    ("assent://billing", "a-z"),
    ("assent:" + "b" * 65, "64"),
    ("assent:billing\n", "a-z"),
]
"""Addresses, and words of the refusal."""


def test_an_invalid_address_is_refused(caller: Caller, subtests: pytest.Subtests) -> None:
    for address, words in ADDRESSES:
        with subtests.test(address[:60]):
            bad(caller.post("/v1/agents", json=BASE | url(address)), 400, "mcp_servers.1.url: ", words)


def test_plain_http_is_for_hosts_that_the_operator_allows(
    stage: Stage, database_urls: object, redis_url: str, tmp_path: Path
) -> None:
    plain = {"type": "url", "name": "local", "url": "http://127.0.0.1:8080/mcp"}
    with served(tmp_path / "log", ASSENT_ALLOWED_PRIVATE_HOSTS="127.0.0.1 localhost") as at, Caller(at, key(stage)) as caller:
        assert caller.agent(mcp_servers=[plain])["mcp_servers"] == [plain]
        bad(caller.post("/v1/agents", json=BASE | url("http://me:secret@example.org")), 400, "mcp_servers.1.url: ", "no password")


SERVERS: dict[str, tuple[Any, str, str]] = {
    "no list": ({}, "mcp_servers: ", "list"),
    "no object": (["https://example.org"], "mcp_servers.0: ", "McpServer"),
    "no type": ([{"name": "n", "url": "https://x.org"}], "mcp_servers.0.type: ", "required"),
    "another type": ([GITHUB | {"type": "stdio"}], "mcp_servers.0.type: ", "'url'"),
    "no name": ([{"type": "url", "url": "https://x.org"}], "mcp_servers.0.name: ", "required"),
    "an empty name": ([GITHUB | {"name": ""}], "mcp_servers.0.name: ", "1"),
    "a name too long": ([GITHUB | {"name": "n" * 256}], "mcp_servers.0.name: ", "255"),
    "no url": ([{"type": "url", "name": "n"}], "mcp_servers.0.url: ", "required"),
    "a url that is a number": ([GITHUB | {"url": 5}], "mcp_servers.0.url: ", "string"),
    "a token": ([GITHUB | {"authorization_token": "t"}], "mcp_servers.0.authorization_token: ", "leave it out"),
    "two of one name": ([GITHUB, GITHUB | {"url": "https://x.org"}], "mcp_servers: ", "'github'"),
    "one whose tools could be another's": ([GITHUB, GITHUB | {"name": "github__a"}], "mcp_servers: ", "mcp__github__a__*"),
    "one that ends as another goes on": ([GITHUB | {"name": "github_"}, GITHUB], "mcp_servers: ", "mcp__github___*"),
    "21 of them": ([GITHUB | {"name": str(n)} for n in range(21)], "mcp_servers: ", "20"),
}
TOOLS: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "no server": ([{"type": "mcp_toolset"}], "tools.0.mcp_server_name: ", "required"),
    "a server of no name": ([of("")], "tools.0.mcp_server_name: ", "1"),
    "an unknown server": ([of(), of("x")], "tools.1.mcp_server_name: 'x'", "'github'"),
    "a server twice": ([of(), of()], "tools: ", "'github'"),
    "an unknown field": ([of(enabled=True)], "tools.0.enabled: ", "leave it out"),
    "a config of no name": ([of(configs=[{"enabled": True}])], "tools.0.configs.0.name: ", "required"),
    "a config of an empty name": ([of(configs=[{"name": ""}])], "tools.0.configs.0.name: ", "1"),
    "a config's name too long": ([of(configs=[{"name": "n" * 129}])], "tools.0.configs.0.name: ", "128"),
    "a config with an unknown field": ([of(configs=[{"name": "a", "type": "a"}])], "tools.0.configs.0.type: ", "leave it out"),
    "a tool twice": ([of(configs=[{"name": "a"}, {"name": "b"}, {"name": "a"}])], "tools.0.configs: ", "'a'"),
    "enabled as text": ([of(configs=[{"name": "a", "enabled": "yes"}])], "tools.0.configs.0.enabled: ", "boolean"),
    "an unknown policy": (
        [of(configs=[{"name": "a"}, {"name": "b", "permission_policy": {"type": "maybe"}}])],
        "tools.0.configs.1.permission_policy.type: ",
        "always_ask",
    ),
    "a default's unknown policy": (
        [of(default_config={"permission_policy": {"type": "auto"}})],
        "tools.0.default_config.permission_policy.default: ",
        "",
    ),
    "policy_from without a policy": (
        [of(configs=[{"name": "a", "policy_from": "tool"}])],
        "tools.0.configs.0.policy_from: ",
        "both or neither",
    ),
    "a default's policy_from without a policy": (
        [of(default_config={"policy_from": "toolset"})],
        "tools.0.default_config.policy_from: ",
        "both or neither",
    ),
    "a default's policy_from that is a tool's": (
        [of(default_config={"permission_policy": ASK, "policy_from": "tool"})],
        "tools.0.default_config.policy_from: ",
        "'toolset'",
    ),
    "an invalid deadline": (
        [of(configs=[{"name": "a", "approval": {"timeout_seconds": 0}}])],
        "tools.0.configs.0.approval.timeout_seconds: ",
        "greater than 0",
    ),
    "a client's tool of a server's name": ([custom("t"), custom("mcp__github__push")], "tools.1.name: ", "'github'"),
    "257 tools by name": (
        [of(configs=[{"name": f"t{n}"} for n in range(256)]), custom("t")],
        "tools: ",
        "256",
    ),
    "257 configs": ([of(configs=[{"name": f"t{n}"} for n in range(257)])], "tools.0.configs: ", "256"),
}


def test_invalid_servers_are_refused_by_their_field(caller: Caller, subtests: pytest.Subtests) -> None:
    everywhere = Everywhere(caller)
    for case, (servers, field, words) in SERVERS.items():
        with subtests.test(case):
            everywhere.is_refused({"mcp_servers": servers}, field, words)
    everywhere.is_unchanged()


def test_invalid_toolsets_are_refused_by_their_field(caller: Caller, subtests: pytest.Subtests) -> None:
    everywhere = Everywhere(caller)
    for case, (tools, field, words) in TOOLS.items():
        with subtests.test(case):
            everywhere.is_refused(both(*tools), field, words)
    everywhere.is_unchanged()


class Everywhere:
    """An agent and a session, and all routes that take an agent's lists."""

    def __init__(self, caller: Caller) -> None:
        self.caller, self.agent = caller, caller.agent()
        self.session, self.environment_id = caller.session(self.agent), caller.environment_id()

    def is_refused(self, more: dict[str, Any], field: str, words: str) -> None:
        """Assert that no route takes these lists, and that each message begins with the field."""
        over = {"type": "agent_with_overrides", "id": self.agent["id"]} | more
        for path, body, prefix in (
            ("/v1/agents", BASE | more, ""),
            (f"/v1/agents/{self.agent['id']}", more, ""),
            ("/v1/sessions", {"agent": over, "environment_id": self.environment_id}, "agent."),
            (f"/v1/sessions/{self.session['id']}", {"agent": more}, "agent."),
        ):
            error = bad(self.caller.post(path, json=body), 400, words)
            assert error["message"].startswith(prefix + field), (path, error)

    def is_unchanged(self) -> None:
        """Assert that nothing was stored."""
        assert good(self.caller.get("/v1/agents"))["data"] == [self.agent]
        [listed] = good(self.caller.get("/v1/sessions"))["data"]
        assert listed | {"stats": None} == self.session | {"stats": None}, "the statistics alone, which have ages, may differ"


@pytest.mark.parametrize("value", ["yes", 1, []])
def test_one_call_at_a_time_is_true_or_false(caller: Caller, value: Any) -> None:
    bad(caller.post("/v1/agents", json=BASE | {"disable_parallel_tool_use": value}), 400, "disable_parallel_tool_use: ", "boolean")
