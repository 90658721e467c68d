"""A page shows the whole call, as text and never as markup. No character hides or turns another."""

from collections.abc import Callable

import httpx2
import people
import pytest
from inbox.plain import Plain
from inbox.visitor import Visitor
from inbox.waiting import asked, asks_back
from playwright.sync_api import expect
from rows.spending import limit
from rows.stage import Stage, call

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.people.passkey import Credential, Passkey
from models.people.roles import Role
from models.workspace.api_key import ApiKey, NewKey
from models.workspace.halt import Halt
from models.workspace.spend_limit import SpendLimit

NASTY = "<img src=x onerror=alert(1)><script>alert(2)</script> \u202egpj.exe\u00a0\u3164"
SHOWN = NASTY.replace("\u202e", "<U+202E>").replace("\u00a0", "<U+00A0>").replace("\u3164", "<U+3164>")


def test_a_model_s_text_is_no_markup_on_any_page(admin: Visitor, stage: Stage) -> None:
    [approval] = asked(stage, call(command=NASTY), text=NASTY)
    paths = ["", f"/approvals/{approval.id}", f"/approvals/{approval.id}/edit?as=json", f"/sessions/{approval.session_id}"]
    for path in paths:
        admin.open(f"/inbox{path}")
        assert admin.page.locator("img, main script").count() == 0
        assert "\u202e" not in admin.page.content()
    admin.open(f"/inbox/approvals/{approval.id}")
    expect(admin.page.locator(".evidence pre.code")).to_have_text(SHOWN)
    admin.open(f"/inbox/approvals/{approval.id}/edit?as=json")
    assert "\\u202e" in admin.page.get_by_label("The whole input").input_value()


def test_names_are_no_markup_on_any_page(api: str, stage: Stage) -> None:
    """Names of people, groups, keys, sessions, agents, passkeys and browsers, and the reason of a halt."""
    anna = people.member(stage, "admin", email="anna@example.com", groups=[people.group(stage, NASTY)])
    [approval] = asked(stage, call(command="ls"), text=NASTY)
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE person SET name = %(name)s WHERE id = %(id)s", name=NASTY, id=anna.person_id)
        db.write("UPDATE session SET title = %(name)s", name=NASTY)
        db.write("UPDATE sign_in SET user_agent = %(name)s", name=NASTY)
        ApiKey.create(db, NewKey(NASTY, scopes=frozenset({"read"})), by=anna.principal)
        Passkey.add(db, anna.person_id, Credential(id=b"1", public_key=b"1", sign_count=0), name=NASTY, by=anna.principal)
        Halt.start(db, anna.principal, NASTY)
    form = {"do": "session", "sha256": approval.input_sha256}
    link = people.invited(stage, email="ben@example.com")
    with anna.client(api) as client:
        assert client.post(f"/inbox/approvals/{approval.id}/decision", data=form).status_code == 303
        paths = ["", "?show=decided", f"?show={NASTY}&q={NASTY}", f"/approvals/{approval.id}", "/sessions", "/grants", "/people"]
        paths += ["/keys", "/audit", f"/audit?action={NASTY}", f"/sessions/{approval.session_id}", "/account", f"/{NASTY}"]
        pages = [f"/inbox{path}" for path in paths] + [
            link,
            f"/sign-in?next={NASTY}",
            f"/sign-in/oidc/{NASTY[:30]}",
            f"/sign-in/link/{NASTY[:30]}",
        ]
        shown = {page: client.get(page).text for page in pages}
    for page, text in shown.items():
        assert text.lstrip().startswith("<!doctype html>"), page
        assert "<img" not in text, page
        assert "<script>" not in text, page
        assert not {"\u202e", "\u3164"} & set(text), page
    assert len([page for page, text in shown.items() if "&lt;img src=x" in text]) > 10


def test_a_tool_s_question_is_no_markup_and_only_web_pages_are_links(plain: Plain, stage: Stage) -> None:
    questions = {
        "form": {"message": "For \u202ewhom?", "schema": {"type": "object", "properties": {"a\u202eb": {"type": "string"}}}},
        "page": {"message": "There.", "url": "javascript:alert(1)"},
    }
    approval = asks_back(stage, questions)
    plain.open(f"/inbox/approvals/{approval.id}")
    assert "For <U+202E>whom?" in plain.page.one("main")
    assert plain.page.field("a<U+202E>b").get("type") == "text"
    assert "javascript:alert(1)" in plain.page.one("main")
    assert not plain.page.all("main a[href^=javascript]")


def test_secrets_are_masked_until_a_person_with_the_right_shows_them(plain: Plain, stage: Stage) -> None:
    [approval] = asked(stage, call("write", file_path="a", content="password = hunter22hunter22"), write="always_ask")
    plain.open(f"/inbox/approvals/{approval.id}")
    assert "«masked»" in plain.page.one("#evidence")
    assert "hunter22" not in plain.response.text
    plain.press("Show the secrets (audited)")
    assert "hunter22hunter22" in plain.page.one("#evidence")
    with transaction(stage.workspace_id) as db:
        [act] = db.find(Audit, "WHERE action = 'approval.revealed'")
    assert act.principal == str(plain.somebody.principal)


@pytest.fixture
def get(api: str, stage: Stage) -> Callable[..., httpx2.Response]:
    """`get(role, path)`: the response to a person of this role."""

    def get_as(role: str, path: str) -> httpx2.Response:
        with people.member(stage, role).client(api) as client:  # type: ignore[arg-type]
            return client.get(path)

    return get_as


PAGES = [
    *("/inbox", "/inbox/sessions", "/inbox/grants", "/inbox/people", "/inbox/keys", "/inbox/provider-keys"),
    *("/inbox/usage", "/inbox/audit", "/inbox/agents", "/inbox/agents/new", "/inbox/policies", "/inbox/nowhere"),
]


@pytest.mark.parametrize("path", PAGES)
def test_each_page_has_the_strict_policy_and_loads_nothing_from_elsewhere(get: Callable[..., httpx2.Response], path: str) -> None:
    page = get("admin", path)
    assert page.status_code == (404 if path.endswith("nowhere") else 200)
    policy = page.headers["content-security-policy"]
    assert policy.split("; ") == [
        "default-src 'none'",
        *("script-src 'self'", "connect-src 'self'", "style-src 'self'", "img-src 'self' data:", "font-src 'self'"),
        *("manifest-src 'self'", "worker-src 'self'"),
        *("base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"),
        *("require-trusted-types-for 'script'", "trusted-types assent-worker"),
    ]
    assert page.headers["cache-control"] == "no-store"
    assert "http://" not in page.text.replace("http://www.w3.org", "")
    assert "https://" not in page.text
    assert " style=" not in page.text
    assert " onclick=" not in page.text


def test_a_visitor_is_sent_to_the_sign_in_page_and_back(api: str) -> None:
    for path in PAGES[:-1]:
        response = httpx2.get(f"{api}{path}?show=all")
        assert (response.status_code, response.headers["location"]) == (
            303,
            f"/sign-in?next={path.replace('/', '%2F')}%3Fshow%3Dall",
        )
    assert httpx2.post(f"{api}/inbox/approvals/appr_1/decision").status_code == 401


@pytest.mark.parametrize("role", ["developer", "approver", "viewer"])
def test_pages_of_admins_are_for_admins(get: Callable[..., httpx2.Response], role: str) -> None:
    for path in ("/inbox/people", "/inbox/keys", "/inbox/provider-keys", "/inbox/usage", "/inbox/audit", "/inbox/audit/export"):
        assert get(role, path).status_code == 403


def test_a_form_of_another_site_decides_nothing(api: str, stage: Stage) -> None:
    [approval] = asked(stage)
    with people.member(stage, "admin").client(api) as client:
        path, form = f"/inbox/approvals/{approval.id}/decision", {"do": "allow", "sha256": approval.input_sha256}
        assert client.post(path, data=form, headers={"sec-fetch-site": "cross-site"}).status_code == 403
        assert client.post(path, data=form, headers={"x-csrf-token": "forged"}).status_code == 403
        assert client.post(path, data=form | {"sha256": "0" * 64}).status_code == 409
    assert stage.approvals(approval.session_id)[0].status == "pending"


@pytest.mark.parametrize(("role", "headers"), [("developer", {}), ("admin", {"x-csrf-token": "forged"})])
def test_a_spend_limit_is_changed_by_admins_on_the_page_alone(api: str, stage: Stage, role: Role, headers: dict[str, str]) -> None:
    row = limit(stage, "10")
    with people.member(stage, role).client(api) as client:
        form = {"scope": f"workspace {stage.workspace_id}", "period": "monthly", "amount": "1000"}
        assert client.post("/inbox/usage/limits", data=form, headers=headers).status_code == 403
        assert client.post(f"/inbox/usage/limits/{row.id}/delete", headers=headers).status_code == 403
    assert stage.get(SpendLimit, row.id).amount == 10


def test_a_viewer_sees_why_the_buttons_are_off(visit_without_scripts: Callable[..., Plain], stage: Stage) -> None:
    [approval] = asked(stage)
    viewer = visit_without_scripts("viewer")
    viewer.open(f"/inbox/approvals/{approval.id}")
    assert not viewer.page.all("button:not([disabled])", name="Allow once")
    assert "Your role, viewer, does not decide." in viewer.page.one("#why-not")
