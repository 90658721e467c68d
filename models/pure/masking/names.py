"""Recognises names whose value is a secret, in any spelling, and excludes similar names."""

import re
from functools import lru_cache


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_LONGEST = 100
"""Characters of a name that are read, from its end: the last words decide."""

_HEADS = _set(
    """
    passphrase passphrases passcode passkey cookie cookies credential credentials cred creds authorization jwt bearer otp totp
    dbpass sshpass userpass apikeys
    """
)
_ENDINGS = tuple(
    _set(
        """
        password passwords passwd passwort kennwort pwd secret secrets apikey accesskey secretkey privatekey authkey
        accountkey masterkey signingkey encryptionkey licensekey subscriptionkey
        """
    )
)

KEYS = _set(
    """
    access account aes api app auth authentication authorization cipher client crypto decryption deploy encryption functions gpg
    hmac jwt licence license master pgp priv private recovery root rsa secret service session shared sign signing ssh storage
    subscription symmetric webhook wrapping
    """
)
"""`api key` is a secret; `primary key`, `public key` and `key` are not."""
_PASSES = _set("admin auth database db email ftp http imap login mail mysql pg postgres proxy redis root smtp user")
_TOKENS = _set("access api auth bearer bot csrf device jwt oauth personal push refresh secret security service user")
_CODES = _set("backup mfa otp recovery verification")
_AFTER: dict[str, frozenset[str | None]] = {
    "key": frozenset(KEYS),
    "keys": frozenset(KEYS),
    "tokens": frozenset(_TOKENS),
    "pass": frozenset({None, *_PASSES}),
    "auth": frozenset({None, "basic", "http", "npm", "proxy", "redis", "rediscli", "registry"}),
    "code": frozenset(_CODES),
    "codes": frozenset(_CODES),
    "phrase": frozenset({"pass", "recovery", "seed"}),
}
"""Words that name a secret only after certain words (None: alone): `access tokens`, but `tokens` and `input tokens` are counts."""
_COUNTED = _set(
    """
    bos budget by cached cls completion continuation count cursor design end eos input lexer mask max min n next num output pad page
    pagination per price prompt sep special start stop sub syntax thinking total unk
    """
)
"""`max token`, `next page token`: counts and places."""
_ASIDE = _set(
    """
    again b64 base64 binary confirm confirmation current data env hash hashed hex new old plain plaintext raw repeat str string
    text val value
    """
)
"""Words at the end of a name that do not change its meaning: `password confirmation`, `SecretString`."""


def is_secret(name: str, value: object = None) -> bool:
    """True if `name` names a secret. `PWD` is a folder if the value looks like one."""
    if not _names_secret(name[-_LONGEST:]):
        return False
    return not (name.lower() in {"pwd", "oldpwd"} and isinstance(value, str) and value.startswith(("/", "~", ".", "$")))


@lru_cache(maxsize=4096)
def _names_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    while len(words) > 1 and (words[-1] in _ASIDE or words[-1].isdigit()):
        words.pop()
    if not words:
        return False
    before, last = words[-2] if len(words) > 1 else None, words[-1]
    if last in _AFTER:
        return before in _AFTER[last]
    if last.endswith("token"):
        return before not in _COUNTED
    return (last in _HEADS or last.endswith(_ENDINGS)) and before != "pull"  # a pod's image pull secrets are names
