"""The page that explains the words and the states of all pages."""

from api.desk.shell.blueprint import page
from api.door.framed import FramedPage
from models.database.rows import Db
from models.people.principal import PersonPrincipal
from models.pure.state_words import APPROVAL, DELIVERY, EFFECT, GIVEN_UP, SERVICE, SESSION, SYSTEM, TOOL_CALL

WORDS = {
    "Deciding": {
        "approval": "A question to people: may this call run? It shows what would run, and it has a deadline.",
        "decision": "The answer that closes an approval. Silence is a no, unless the tool's settings say otherwise.",
        "vote": "One person's part of a decision where several people must agree.",
        "call": "One effect that a model proposes: a command, a change of a file, a request to another system.",
        "grant": "A rule that a decision creates: later calls like this one run without asking. A grant ends, and can be revoked.",
        "policy": "The rules that allow, ask or deny. Those of the workspace, the agent and the tool all count.",
        "quorum": "How many people must agree, and of which groups.",
        "unknown outcome": "A call began, and nobody knows whether it took effect. A person says what happened.",
        "given up": "Nobody finds out whether such a call took effect. It does not run again, and the agent is told.",
        "escalation": "The deadline passed, and other people are asked.",
        "reads only, may write, may destroy": "What a call may do, as its tool declares it, or as the words of a command say.",
        "at most once": "If the worker of such a call is lost, the call does not run again by itself: a person says what happened.",
        "first time": "This agent has not asked for such a call before.",
        "mask": "What stands in the place of a secret. The call runs with the real value.",
    },
    "Working": {
        "agent": "A model with instructions, tools and rules. Each change makes a new version of it.",
        "session": "A durable conversation with one agent. It survives every restart.",
        "turn": "One request to the model with its reply. The calls of the reply run before the next turn.",
        "thread": "The conversation of one agent within a session. A sub-agent has a thread of its own.",
        "lane": "A line beside a session that shows when the model worked, when tools ran, and when people were waited for.",
        "budget": "The most that a session may spend. At the budget, people are asked whether to raise it.",
        "out of turns": "The agent used the turns that a message gives it, and had not finished. “Go on” gives it as many again.",
        "cut off": "The model's reply or the conversation became longer than the model can take.",
        "halt": "Nothing begins in the workspace until an admin lifts the halt. No deadline passes meanwhile.",
        "toolset, MCP server": "Where tools come from: Python code of the team, or a server that speaks MCP.",
    },
    "Running Assent": {
        "channel": "Where Assent tells people what waits: mail, Slack, or another service. Each person has channels of their own.",
        "webhook": "Where Assent tells other systems what happens, by signed requests.",
        "API key": "A program's right to use the API. A key never counts as a person.",
        "scope": "One thing that a key may do.",
        "audit": "Every act, by whom and when, in chains of hashes. A seal signs them, so that a change is found.",
        "workspace": "One team's agents, sessions, people and rules, apart from all others.",
    },
}
"""What each word means, by the group of words to which it belongs."""


@page("/inbox/words", "words", "own or read")
def words(_db: Db, _person: PersonPrincipal) -> FramedPage:
    """Show the words, and the states with their glyphs."""
    states = {
        "An approval is": APPROVAL | {"given up": GIVEN_UP},
        "A session is": SESSION,
        "A call is": TOOL_CALL | {"given up": GIVEN_UP},
        "A rule says": EFFECT,
        "A message is": DELIVERY,
        "A service is": SERVICE,
        "A part is": SYSTEM,
    }
    return FramedPage("help/words.html", groups=WORDS, states=states)
