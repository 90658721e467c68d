"""Routes of people, invitations and groups, as the SDK's `beta.organization` has them. All are of the principal's workspace."""

from api.routes.people.groups import groups
from api.routes.people.invites import invites
from api.routes.people.users import users

__all__ = ["groups", "invites", "users"]
