"""Messages with a link and a code, and forms that a browser without a sign-in sends at the link."""

import re
from dataclasses import dataclass

import httpx2
from people import Somebody, Visitor
from rows.stage import Stage

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.notices import link
from models.notices.link import Link
from models.session.approval.row import Approval

TOKEN = re.compile(r'name="csrf_token" value="([0-9a-f]{64})"')


@dataclass(frozen=True)
class Message:
    """The link and the code in a person's message about an approval."""

    stage: Stage
    path: str
    code: str

    @property
    def wrong_code(self) -> str:
        """Six digits that are not the code."""
        return f"{(int(self.code) + 1) % 10**link.CODE_DIGITS:06}"

    @property
    def token(self) -> str:
        """The token in the address."""
        return self.path.rpartition("/")[2]

    @property
    def row(self) -> Link:
        """The link's row now."""
        with transaction(self.stage.workspace_id) as db:
            return db.find(Link, "WHERE token_sha256 = %(digest)s", digest=link.sha256(self.token))[0]


def new_message(stage: Stage, approval: Approval, to: Somebody) -> Message:
    """Prepare a message, as a sender does."""
    with transaction(stage.workspace_id) as db:
        issued = link.issue(db, approval, to.person_id)
    return Message(stage, httpx2.URL(issued.url).path, issued.code)


def fields(page: httpx2.Response, **values: str) -> dict[str, str]:
    """The values of the form on a page."""
    token = TOKEN.search(page.text)
    assert token, page.text
    return {"csrf_token": token[1]} | values


def send(api: str, message: Message, **values: str) -> httpx2.Response:
    """Open the address in a new browser, and send the form, with the right code unless `values` name another."""
    with Visitor(api) as browser:
        return browser.post(message.path, data=fields(browser.get(message.path), **{"code": message.code} | values))


def decided_by(stage: Stage, approval: Approval) -> Audit:
    """The audit act of an approval's decision."""
    with transaction(stage.workspace_id) as db:
        [act] = db.find(Audit, "WHERE action = 'approval.decided' AND subject_id = %(id)s", id=approval.id)
        return act
