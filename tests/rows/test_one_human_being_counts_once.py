"""A one-time link signs in whoever opens it, perhaps its maker. So the person of the link and the maker count as one human being,
until somebody else confirms the person."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from people import Somebody, member
from rows.stage import Stage
from rows.voting import ask, vote, votes

from models.audit.principal import Principal
from models.database.transactions import transaction
from models.errors import Forbidden
from models.people import password, sign_in
from models.people.confirming import confirm, makers_of
from models.people.delegation import Delegation, Terms
from models.people.invitation import Invitation
from models.people.member import Member
from models.people.passkey import Credential, Passkey
from models.people.sign_in import SignIn
from models.session.approval.row import Approval


def operator(stage: Stage) -> Principal:
    """The principal of the command line."""
    return Principal("person", "root", stage.workspace_id)


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    return member(stage, "admin")


@pytest.fixture
def ben(stage: Stage) -> Somebody:
    return member(stage)


@pytest.fixture
def two(stage: Stage) -> Approval:
    """An approval that two people must allow."""
    return ask(stage, stage.session(approval={"required_approvals": 2}))


def entered(stage: Stage, way: Any, who: Somebody) -> Somebody:
    """Sign somebody in, as the principal that the cookie's look-up returns."""
    with transaction(stage.workspace_id) as db:
        _row, secret = SignIn.start(db, way(db), "link")
    opened = sign_in.find(secret)
    assert opened
    return replace(who, principal=opened.person, secret=secret)


def by_link(stage: Stage, who: Somebody, by: Principal) -> Somebody:
    """Have `by` make a link for somebody. Returns the person who signs in by it."""
    with transaction(stage.workspace_id) as db:
        row, _secret = Invitation.renew(db, who.person_id, by=by)
    return entered(stage, lambda db: Invitation.accept(db, row.id, "", None), who)


def by_passkey(stage: Stage, who: Somebody) -> Somebody:
    """Add a passkey in this sign-in, and return the person who signs in by it."""
    credential = who.secret.encode()
    with transaction(stage.workspace_id) as db:
        row = Passkey.add(
            db, who.person_id, Credential(id=credential, public_key=b"key", sign_count=0), name="Phone", by=who.principal
        )
        passkey_id = row.id
    return entered(stage, lambda db: Member.find(db, who.person_id).principal(db, db.get_one(Passkey, passkey_id).makers), who)


def by_password(stage: Stage, who: Somebody) -> Somebody:
    """Set a password in this sign-in, and return the person who signs in by it."""
    with transaction(stage.workspace_id) as db:
        password.store(db, who.person_id, password.hashed("correct horse battery"), by=who.principal)
    [(person, _hash)] = password.candidates(who.email)
    assert person
    return entered(stage, lambda _db: person, who)


def status(stage: Stage, approval: Approval) -> str:
    return stage.get(Approval, approval.id).status


def test_a_sign_in_by_a_voter_s_link_does_not_count_beside_the_voter(
    stage: Stage, anna: Somebody, ben: Somebody, two: Approval
) -> None:
    vote(stage, anna, two)
    as_ben = by_link(stage, ben, anna.principal)
    with pytest.raises(Forbidden, match=r"does not count beside the vote of .* a link that .* made.* Confirm your way to sign in"):
        vote(stage, as_ben, two)
    assert votes(stage, two) == [(anna.person_id, "allow")]
    vote(stage, as_ben, two, "deny")
    assert status(stage, two) == "denied", "a denial needs no second person"


def test_the_maker_does_not_count_beside_who_used_the_link(stage: Stage, anna: Somebody, ben: Somebody, two: Approval) -> None:
    vote(stage, by_link(stage, ben, anna.principal), two)
    with pytest.raises(Forbidden, match="signed in by a link that you made"):
        vote(stage, anna, two)
    vote(stage, member(stage), two)
    assert status(stage, two) == "allowed"


def test_two_links_of_one_maker_count_once(stage: Stage, anna: Somebody, ben: Somebody, two: Approval) -> None:
    vote(stage, by_link(stage, ben, anna.principal), two)
    with pytest.raises(Forbidden, match="one person may have cast both"):
        vote(stage, by_link(stage, member(stage), anna.principal), two)


@pytest.mark.parametrize("way", [by_passkey, by_password])
def test_ways_to_sign_in_that_were_added_in_that_sign_in_do_not_count_either(
    stage: Stage, anna: Somebody, ben: Somebody, two: Approval, way: Any
) -> None:
    vote(stage, anna, two)
    with pytest.raises(Forbidden, match="does not count beside"):
        vote(stage, way(stage, by_link(stage, ben, anna.principal)), two)


def test_a_link_of_a_key_is_a_link_of_the_key_s_maker(stage: Stage, anna: Somebody, ben: Somebody, two: Approval) -> None:
    vote(stage, anna, two)
    of_key = replace(stage.principal, kind="system", makers=(anna.person_id,))
    with pytest.raises(Forbidden, match="does not count beside"):
        vote(stage, by_link(stage, ben, of_key), two)


def test_a_link_that_such_a_sign_in_made_leads_back_to_the_first_maker(
    stage: Stage, anna: Somebody, ben: Somebody, two: Approval
) -> None:
    vote(stage, anna, two)
    as_cara = by_link(stage, member(stage, "admin"), anna.principal)
    with pytest.raises(Forbidden, match="does not count beside"):
        vote(stage, by_link(stage, ben, as_cara.principal), two)


def test_a_link_of_the_operator_s_command_line_counts(stage: Stage, anna: Somebody, ben: Somebody, two: Approval) -> None:
    vote(stage, anna, two)
    vote(stage, by_link(stage, ben, operator(stage)), two)
    assert status(stage, two) == "allowed"


def test_with_four_eyes_the_maker_s_run_is_not_decided_by_who_used_the_link(stage: Stage, anna: Somebody, ben: Somebody) -> None:
    run = stage.session(approval={"four_eyes": True}, on_behalf_of=f"user:{anna.person_id}")
    approval = ask(stage, run)
    with pytest.raises(Forbidden, match=r"signed in by a link that .* made, and .* asked for this call"):
        vote(stage, by_link(stage, ben, anna.principal), approval)
    vote(stage, member(stage), approval)
    assert status(stage, approval) == "allowed"


def test_another_admin_confirms_and_then_the_vote_counts(stage: Stage, anna: Somebody, ben: Somebody, two: Approval) -> None:
    as_ben = by_passkey(stage, by_link(stage, ben, anna.principal))
    cara = member(stage, "admin")
    with transaction(stage.workspace_id) as db:
        assert makers_of(db, [ben.person_id, anna.person_id]) == {ben.person_id: [anna.person_id]}
        confirm(db, ben.person_id, by=cara.principal)
        assert makers_of(db, [ben.person_id]) == {}
    confirmed = sign_in.find(as_ben.secret)
    assert confirmed
    vote(stage, anna, two)
    vote(stage, replace(as_ben, principal=confirmed.person), two)
    assert status(stage, two) == "allowed"


def test_a_vote_that_was_cast_before_counts_anew_once_it_is_sent_again(
    stage: Stage, anna: Somebody, ben: Somebody, two: Approval
) -> None:
    as_ben = by_link(stage, ben, anna.principal)
    vote(stage, as_ben, two)
    with transaction(stage.workspace_id) as db:
        confirm(db, ben.person_id, by=operator(stage))
    confirmed = sign_in.find(as_ben.secret)
    assert confirmed
    vote(stage, replace(as_ben, principal=confirmed.person), two)
    vote(stage, anna, two)
    assert status(stage, two) == "allowed"


def test_neither_the_maker_nor_the_person_of_the_link_nor_a_key_confirms(stage: Stage, anna: Somebody, ben: Somebody) -> None:
    as_ben = by_link(stage, ben, anna.principal)
    as_cara = by_link(stage, member(stage, "admin"), anna.principal)
    for who, why in (
        (anna.principal, "You made a link of"),
        (as_ben.principal, "You signed in by a link yourself"),
        (as_cara.principal, "You signed in by a link yourself"),
        (stage.principal, "An API key cannot confirm anybody"),
    ):
        with transaction(stage.workspace_id) as db, pytest.raises(Forbidden, match=why):
            confirm(db, ben.person_id, by=who)


def test_a_person_confirms_their_own_ways_in_another_sign_in(stage: Stage, anna: Somebody, ben: Somebody) -> None:
    """Such as by an issuer, which no link can use."""
    as_ben = by_passkey(stage, by_link(stage, ben, anna.principal))
    by_issuer = entered(stage, lambda db: Member.find(db, ben.person_id).principal(db), ben)
    with transaction(stage.workspace_id) as db:
        confirm(db, ben.person_id, by=by_issuer.principal)
    confirmed = sign_in.find(as_ben.secret)
    assert confirmed
    assert confirmed.person.makers == ()


def test_nobody_delegates_to_the_maker_in_such_a_sign_in(stage: Stage, anna: Somebody, ben: Somebody) -> None:
    as_ben = by_link(stage, ben, anna.principal)
    terms: dict[str, Any] = {"group_id": None, "starts_at": None, "ends_at": datetime.now(UTC) + timedelta(days=1)}
    with transaction(stage.workspace_id) as db, pytest.raises(Forbidden, match="to: nobody takes another's right by their own act"):
        Delegation.give(db, as_ben.principal, Terms(from_person_id=ben.person_id, to_person_id=anna.person_id, **terms))
