"""What must never be printed: values by the name they go under, and passwords inside addresses."""

from __future__ import annotations

import re

MASK = "********"
MASKED_NAMES = (
    "pass(word|wd|phrase)|secret|jaas|token|credential|private"
    r"|keystore\.key|user\.info|access\.?key|api\.?key"
)
"""Part of a secret's name, in any case, with dots for underscores."""
_MASKED = re.compile(MASKED_NAMES, re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
# `password=...` inside another value, as a JAAS configuration or a connection string has it.
_ASSIGNED = re.compile(
    r"(?i)\b(password|passwd|secret|token)(\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s;,&]+)"
)


def is_secret(name: str) -> bool:
    """Whether a value under this name is to be masked; `ssl.truststore.location` isn't."""
    return _MASKED.search(name.replace("_", ".")) is not None


def masked(name: str, value: str) -> str:
    """Return `value` as it may be printed under `name`."""
    return MASK if is_secret(name) else masked_text(value)


def masked_text(text: str) -> str:
    """Return free text without the passwords in its addresses and assignments."""
    return _ASSIGNED.sub(rf"\1\2{MASK}", _USER_INFO.sub(MASK, text))
