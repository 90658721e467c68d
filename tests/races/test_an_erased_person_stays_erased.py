"""Whatever a person does in the moment of the erasure, no row keeps the address."""

from functools import partial

from people import Somebody, member
from races.races_together import together
from rows.stage import Stage
from rows.voting import ask, vote

from models.database import ids
from models.database.transactions import transaction
from models.errors import Refusal
from models.operate.personal_data import person
from models.people.invitation import Invitation
from models.people.passkey import Credential, Passkey
from models.people.person import Person
from models.people.sign_in import SignIn
from workers.sweeps import deleting

ROUNDS = 10


def erase(stage: Stage, who: Somebody) -> None:
    with transaction(stage.workspace_id) as db:
        person.erase(db, who.person_id, "Asked.", by=stage.principal)


def renew(stage: Stage, who: Somebody) -> str:
    """Make a new link for somebody, and use it."""
    with transaction(stage.workspace_id) as db:
        row, _ = Invitation.renew(db, who.person_id, by=stage.principal)
    with transaction(stage.workspace_id) as db:
        return Invitation.accept(db, row.id, "Anna", None).person_id


def sign_in(stage: Stage, who: Somebody) -> None:
    with transaction(stage.workspace_id) as db:
        SignIn.start(db, who.principal, "link", user_agent="Annabrowser")


def add_passkey(stage: Stage, who: Somebody) -> None:
    with transaction(stage.workspace_id) as db:
        Passkey.add(db, who.person_id, Credential(ids.new("c").encode(), b"key", 0), name="Annas phone", by=who.principal)


def test_what_the_person_does_meanwhile_leaves_nothing(stage: Stage) -> None:
    member(stage, "admin")
    for _ in range(ROUNDS):
        anna = member(stage)
        approval = ask(stage, stage.session())
        acts = (erase, renew, sign_in, add_passkey, erase, sign_in)
        outcomes = together(*(partial(act, stage, anna) for act in acts), partial(vote, stage, anna, approval))
        assert [one for one in outcomes if isinstance(one, Exception) and not isinstance(one, Refusal)] == []
        deleting.remove_deleted()
        with transaction(stage.workspace_id) as db:
            assert db.get_one(Person, anna.person_id).erased_at
            for table in ("sign_in", "passkey", "invitation"):
                column = "email" if table == "invitation" else "person_id"
                value = anna.email if table == "invitation" else anna.person_id
                assert db.value(f"SELECT count(*) FROM {table} WHERE {column} = %(value)s", value=value) == 0, table
            assert db.value("SELECT count(*) FROM audit_text WHERE text = %(email)s", email=anna.email) == 0
            assert db.value("SELECT count(*) FROM person WHERE email = %(email)s", email=anna.email) == 0
