"""The pages on which people sign in and out, and manage their sign-ins and passkeys.

routes     the page for signing in, one-time links, signing out
passkeys   passwords   oidc   proxy      the other ways in, each of which ends in `blueprint.enter`
account    a person's own page
connecting an account at an issuer becomes a known person's
authenticator  the library of passkeys, which only passkeys load
adding     what a sign-in needs to add a way to sign in
slack      a person's Slack users
"""

from flask import Flask

from models.people import issuer


def install(app: Flask) -> None:
    """Serve the pages. Exits, with one line, if the settings for people contradict each other."""
    from api.signing_in import account, connecting, oidc, passkeys, passwords, routes, slack
    from api.signing_in.blueprint import signing_in

    try:
        issuer.check()
    except issuer.IssuersMisconfigured as error:
        raise SystemExit(f"assent: {error}") from None
    for pages in (account, connecting, oidc, passkeys, passwords, routes, slack):
        assert pages, "its import adds its routes"
    app.register_blueprint(signing_in)
