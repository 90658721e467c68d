"""The pages by which people sign in and out, and look after their sign-ins and passkeys."""

from api.signing_in.routes import signing_in

__all__ = ["signing_in"]
