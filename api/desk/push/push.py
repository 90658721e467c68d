"""What a browser needs to install Assent and to show its push messages, and the form that begins them."""

import json
from pathlib import Path

from flask import Response, request

from api.desk.settings.channels import my_channels
from api.desk.shell import viewing
from api.desk.shell.blueprint import action, desk
from api.desk.shell.files import address
from models.database.rows import Db
from models.notices import push
from models.people.principal import PersonPrincipal

_WORKER = Path(__file__).with_name("worker.js").read_bytes()
_WORKER_POLICY = "default-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"


@desk.get("/inbox/worker.js")
def worker() -> Response:
    """Return the service worker, at an address that stays. The browser looks for a new one itself."""
    headers = {"content-security-policy": _WORKER_POLICY, "cache-control": "no-cache"}
    return Response(_WORKER, mimetype="text/javascript", headers=headers)


@desk.get("/inbox/manifest.webmanifest")
def manifest() -> Response:
    """Return the manifest, by which a browser installs Assent. It names nobody, since browsers fetch it without a sign-in."""
    icons = [{"src": address(f"icon-{size}.png"), "sizes": f"{size}x{size}", "type": "image/png"} for size in (192, 512)]
    fields = {
        "name": "Assent",
        "short_name": "Assent",
        "id": "/inbox",
        "start_url": "/inbox/home",
        "scope": "/inbox",
        "display": "standalone",
        "background_color": "#ffffff",
        "theme_color": "#2f5bd7",
        "icons": [*icons, *({**icon, "purpose": "maskable"} for icon in icons)],
    }
    return Response(json.dumps(fields), mimetype="application/manifest+json", headers={"cache-control": "public, max-age=3600"})


@action("/inbox/channels/push", "own", section="channels", again=my_channels)
def add_browser(db: Db, person: PersonPrincipal) -> str:
    """Send the person's notifications to this browser; or, with `renew`, go on doing so in a new sign-in."""
    subscription = request.form.get("subscription", "")
    if request.form.get("renew"):
        push.renew(db, person, subscription)
    else:
        push.subscribe(db, person, subscription, viewing.browser_name(request.user_agent.string))
    return "/inbox/channels"
