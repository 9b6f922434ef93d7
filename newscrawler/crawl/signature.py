"""How receivers of our webhooks know who has sent a body."""

from __future__ import annotations

import hashlib
import hmac

#: Carries "sha256=<hex>": the HMAC of the body under the secret that both sides know.
SIGNATURE_HEADER = "X-Newscrawler-Signature"


def sign(body: bytes, secret: str) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
