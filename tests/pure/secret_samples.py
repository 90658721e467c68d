"""Secrets, and texts and values that contain them, for the tests of masking."""

import string

from hypothesis import strategies as st

from models.pure.masking import MARKER


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


NAMES = words(
    """
    password passwd PASSWORD userPassword user-password PGPASSWORD MYSQL_PWD pwd passphrase pass db_pass secret clientSecret
    client_secret CLIENT-SECRET SecretString token authToken _authToken GITHUB_TOKEN refresh_token access_tokens PRIVATE-TOKEN
    x-amz-security-token api_key apikey api-key APIKey X-Api-Key accessKey aws_secret_access_key private_key privateKey signing_key
    authorization Proxy-Authorization cookie Set-Cookie credential credentials creds password_confirmation newPassword password2
    previous_secret passwordHash jwt otp seed_phrase auth basic_auth SSHPASS REDISCLI_AUTH connection.password
    """
)
FALSE_FRIENDS = words(
    """
    author authors authority authorized_by authentication_method tokens tokens_used max_tokens maxTokens input_tokens token_count
    tokenizer token_type token_url
    next_token nextPageToken key keys primary_key public_key publicKey sort_key keyboard monkey api_key_id
    access_key_id secret_name secret_id secretKeyRef imagePullSecrets secretary password_policy passwordLength pass_rate compass
    bypass passport passenger cookie_domain credentials_file file command code zip_code phrase path PASS_THROUGH hotkey
    """
)

TEXTS = [
    "export TOKEN={s} && make",
    "TOKEN='{s}' ./run; ls",
    'printf "%s" --password "{s}" x',
    "psql --password {s} -h db",
    "wget --http-password={s} https://x",
    "curl -H 'Authorization: Bearer {s}' https://x/y",
    'curl -H "authorization: Basic {s}"',
    'curl -H "X-Api-Key: {s}" -H "Accept: */*"',
    "curl -sSu bob:{s} https://x",
    "curl https://x \\\n  -u bob:{s}",
    "git clone https://bob:{s}@host/x.git",
    "postgresql://app:{s}@db:5432/app?sslmode=require",
    "https://x/?a=1&access_token={s}&b=2",
    "mysql -uroot -p{s} -h db",
    "sshpass -p {s} ssh host",
    "docker login -u bob -p {s} registry",
    "redis-cli -h x -a {s} ping",
    "openssl rsa -passin pass:{s} -in k",
    "aws configure set aws_secret_access_key {s}",
    'echo \'{{"user": "bob", "password": "{s}"}}\' > f',
    'curl -d "{{\\"password\\": \\"{s}\\"}}" https://x',
    "db:\n  user: bob\n  password: {s}\n",
    "[db]\npassword = {s}\nhost = x\n",
    "Server=x;Uid=sa;Pwd={s};Database=y",
    "Cookie: theme={s}; sid={s}\nAccept: x",
    "machine x login bob password {s}",
    "CREATE USER bob IDENTIFIED BY '{s}'",
]
KNOWN = [
    "sk-ant-api03-AbCdEfGhIjKlMnOp0123_-x",
    "sk-proj-AbCdEfGhIjKlMnOp0123",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_" + "a1B2" * 9,
    "github_pat_11AAAAAAA0" + "a1B2" * 9,
    "glpat-a1B2a1B2a1B2a1B2a1B2",
    "xoxb-123456789012-abcdefABCDEF",
    "AIza" + "aB3_-" * 7,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "npm_" + "a1B2" * 9,
    "SG.a1B2a1B2a1B2a1B2a1B2a1.a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2",
]

SECRETS = st.text(string.ascii_letters + string.digits + "_-+.", min_size=6, max_size=40).map(lambda text: "x7" + text + "Q9")
PLAIN = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(st.characters(exclude_categories=["Cs"]))
BITS = st.sampled_from(
    [
        *" '\"=:;$(){}\\#\n",
        MARKER,
        "password",
        "TOKEN",
        "--token ",
        "Bearer ",
        "://a:",
        "@",
        "mysql -p",
        "Cookie: a=",
        "$(",
        "don't",
    ]
)
SCRAPS = st.lists(BITS | st.sampled_from([*KNOWN, *TEXTS]) | st.text("ab1 ", max_size=4), max_size=12).map("".join)
KEYS = st.sampled_from(
    ["password", "a", "value", "name", "token", "max_tokens", "args", "~/", KNOWN[3], KNOWN[4], MARKER]
) | st.text(max_size=5)
JSON = st.recursive(
    PLAIN | SCRAPS | st.sampled_from(KNOWN),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=4)
COMMANDS = st.lists(
    st.sampled_from(
        [*" '\"'\" =:;|&(){}\\\n", "password", "password=", "PASS='", 'TOKEN="', "--token ", "rm ", "-rf ", "~ ", "x1", "echo "]
    )
    | st.sampled_from(["Bearer ", "Authorization: ", "https://a:", "@h ", "mysql -p", "curl -u a:", "Cookie: a=", "don't"]),
    max_size=16,
).map("".join)
"""Command lines, and texts close to them, with misplaced quotes."""
