"""deliver.fan_out turns a change of an approval into notifications; deliver.notify sends one of them, and exits."""

import logging
import threading
import time
from collections import defaultdict

from models.database import encryption
from models.database.rows import Stale
from models.database.transactions import outbox, transaction
from models.notices import recipients
from models.notices.channel import Channel
from models.notices.notification import Notification, Receipt
from models.operate.failing import LeftForLater, TaskRow, bounded
from models.outbox.approval_change import ApprovalChange
from workers.celery import app
from workers.notifiers import Address, Gone, Retry, notifier_for
from workers.outcome import FAILED, FAILURES, LOST, NOT_CLAIMED, SENT, TRIES_AGAIN, Ends, conclude, did, of_several, task

log = logging.getLogger(__name__)

AT_ONCE = 5
"""Most notifications of one kind that this process sends at a time, so that a slow mail server leaves threads for other kinds."""
HOLD_SECONDS = 5.0
"""How long a thread continues with the notifications of one workspace."""
_slots: "defaultdict[str, threading.BoundedSemaphore]" = defaultdict(lambda: threading.BoundedSemaphore(AT_ONCE))


@app.task(name="deliver.fan_out", throws=FAILURES)
def fan_out(change_id: str, workspace_id: str) -> str:
    """Queue, edit or cancel the notifications of an approval that has changed. Returns the outcome."""
    messages = 0
    with bounded("deliver.fan_out", TaskRow(ApprovalChange, change_id, workspace_id)), transaction(workspace_id) as db:
        messages = recipients.fan_out(db, change_id)
    return did("notifications:", messages) or NOT_CLAIMED


@app.task(name="deliver.notify", throws=FAILURES)
def notify(notification_id: str, workspace_id: str) -> str:
    """Attempt one notification, then others of its kind that are due. A late or doubled hint claims nothing.

    Returns the outcome, or raises it for Flower.
    """
    return conclude(of_several(_notify(notification_id, workspace_id)))


def _notify(notification_id: str, workspace_id: str) -> Ends:
    """Return the end of each attempt, with the kind of its channel."""
    ends: Ends = []
    until = time.monotonic() + HOLD_SECONDS
    with transaction(workspace_id) as db:
        kind = recipients.kind_of(db, notification_id)
    slot = _slots[kind]
    if not kind or not slot.acquire(blocking=False):
        return []  # the threads that have the slot continue with due notifications
    try:
        next_id: str | None = notification_id
        while next_id is not None:
            try:
                end = attempt(next_id, workspace_id)
                ends += [(end, kind)] if end else []
            except LeftForLater as error:
                ends.append((FAILED, str(error)))
            with transaction(workspace_id) as db:
                next_id = recipients.next_due(db, kind)
                if next_id is not None and time.monotonic() >= until:
                    outbox(db).hints.append(Notification.hint_of(next_id, workspace_id))
                    next_id = None
    finally:
        slot.release()
    return ends


def attempt(notification_id: str, workspace_id: str) -> str:
    """Claim a notification and send it. Returns the attempt's end, which is empty without a claim. Raises LeftForLater."""
    message: recipients.Message | None = None
    with bounded("deliver.notify", TaskRow(Notification, notification_id, workspace_id)), transaction(workspace_id) as db:
        message = recipients.prepare(db, notification_id, task())
    return send(message) if message is not None else ""


def send(message: recipients.Message) -> str:
    """Send a notification whose lease the caller has, and record the receipt or the error. Returns the attempt's end."""
    workspace_id = message.notification.workspace_id
    outcome = _call(message)
    try:
        with transaction(workspace_id) as db:
            if message.notice.stage == "test":
                outbox(db).workspaces.add(workspace_id)  # refreshes the page on which somebody waits for the result
            if not isinstance(outcome, Exception):
                recipients.finish(db, message, outcome)
                return SENT
            row = message.notification.as_held(db, lock=True)
            if isinstance(outcome, Gone):
                row.refuse(db, str(outcome))
            else:
                row.fail(db, str(outcome), retry_after=outcome.after)
            return TRIES_AGAIN if row.status == "queued" else FAILED
    except Stale:  # the attempt took longer than its lease: another attempt has the notification
        with transaction(workspace_id) as db:
            recipients.resolve_again(db, message)
        return LOST


def _call(message: recipients.Message) -> Receipt | Gone | Retry:
    """Call the notifier, and return its receipt or its error."""
    channel = message.channel
    try:
        return notifier_for(channel.kind).send(_address(channel), message.notice, message.earlier)
    except (Gone, Retry) as error:
        return error
    except encryption.Undecryptable as error:
        return Retry(str(error))
    except Exception as error:  # noqa: BLE001 - whatever a package raises, the attempt is recorded
        # Without the error's text, which may contain an address with its secrets.
        log.error("%s: the notifier of %s failed (%s)", message.notification.id, channel.kind, type(error).__name__)
        return Retry(f"The notifier failed ({type(error).__name__}).")


def _address(channel: Channel) -> Address:
    secret = encryption.decrypt("deliver", channel.secret, channel.id) if channel.secret else ""
    return Address(channel.id, channel.workspace_id, channel.person_id, channel.address, secret)
