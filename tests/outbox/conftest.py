"""A workspace whose events go to endpoints, and a receiver on loopback that may be reached."""

import json
from collections.abc import Callable, Iterator

import pytest
from outbox.fake_slack import ANNA, TOKEN, FakeSlack, SlackPerson, faking
from outbox.mailbox import Mailbox, serving
from outbox.receiver import Receiver, receiving
from people import Somebody, member
from rows.stage import Stage
from rows.tasks import work

from models.database import clock, encryption, transactions
from models.database.transactions import Hint, transaction
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint, NewEndpoint
from models.outbox.webhook_events import EVENTS
from models.people.slack_user import SlackUser
from models.settings import settings
from workers import deliver, enqueue

MakeEndpoint = Callable[..., Endpoint]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """An HTTP server at an address that the operator allows."""
    monkeypatch.setenv("ASSENT_ALLOWED_PRIVATE_HOSTS", "127.0.0.1")
    settings.cache_clear()
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def new_endpoint(stage: Stage) -> MakeEndpoint:
    """Makes an endpoint: `new_endpoint(url, "session.created")`. Without a type the endpoint gets all events."""

    def create(url: str = "https://example.com/hook", *events: str) -> Endpoint:
        with transaction(stage.workspace_id) as db:
            return Endpoint.create(db, stage.principal, NewEndpoint(url=url, enabled_events=events or EVENTS))[0]

    return create


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSlack]:
    """A fake Slack, whose token and address are in this process's settings."""
    with faking() as fake:
        monkeypatch.setenv("ASSENT_SLACK_BOT_TOKEN", TOKEN)
        monkeypatch.setenv("ASSENT_SLACK_API_URL", fake.url)
        settings.cache_clear()
        yield fake


def linked(stage: Stage, person: Somebody, who: SlackPerson = ANNA) -> str:
    """Link a Slack user to a person. Returns the row's id."""
    with transaction(stage.workspace_id) as db:
        row = SlackUser.of(db, who.team_id, who.id, who.name)
        SlackUser.link(db, str(SlackUser.new_link(db, row.id)), person.principal)
        return row.id


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    """An approver whose Slack user is linked."""
    person = member(stage, email="anna@example.com")
    linked(stage, person)
    return person


def deliveries(stage: Stage) -> list[Delivery]:
    """The workspace's deliveries, oldest first."""
    with transaction(stage.workspace_id) as db:
        return db.find(Delivery, "ORDER BY id")


def send_due(stage: Stage) -> None:
    """Do what a worker does with a hint of each queued delivery."""
    for delivery in deliveries(stage):
        if delivery.status == "queued":
            work(deliver.send, delivery.id, stage.workspace_id)


def secret_of(endpoint: Endpoint) -> str:
    """The endpoint's signing secret, as its owner has it."""
    return encryption.decrypt("deliver", endpoint.secret, endpoint.id)


def endpoint_now(stage: Stage, endpoint: Endpoint) -> Endpoint:
    """The endpoint as it is now."""
    with transaction(stage.workspace_id) as db:
        return db.get_one(Endpoint, endpoint.id)


@pytest.fixture
def hints() -> Iterator[list[Hint]]:
    """The hints that are sent after commits. No worker gets them."""
    sent: list[Hint] = []
    transactions.on_commit(lambda box: sent.extend(box.hints))
    yield sent
    transactions.on_commit(enqueue.send)


def answers(stage: Stage, endpoint: Endpoint) -> Endpoint:
    """Record a quick 2xx of an endpoint. Returns the endpoint."""
    with transaction(stage.workspace_id) as db:
        db.get_one(Endpoint, endpoint.id, lock=True).succeed(clock.now(db), 0.01)
    return endpoint


@pytest.fixture
def ops(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """The receiver, behind the operator's URL `ops`: apprise posts JSON to it."""
    monkeypatch.setenv("ASSENT_NOTIFICATION_URLS", json.dumps({"ops": receiver.url.replace("http://", "json://")}))
    settings.cache_clear()
    return receiver


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    """A mail server that Assent is configured to use."""
    with serving() as mailbox:
        monkeypatch.setenv("ASSENT_SMTP_URL", mailbox.url)
        monkeypatch.setenv("ASSENT_MAIL_FROM", "Assent <assent@example.org>")
        settings.cache_clear()
        yield mailbox
