"""Routes of people, invitations and groups in the principal's workspace, in the form of the SDK's `beta.organization`."""

from api.routes.people.groups import groups
from api.routes.people.invites import invites
from api.routes.people.users import users

__all__ = ["groups", "invites", "users"]
