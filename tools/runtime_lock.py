"""Prints the part of a lock that the service runs on: without what only its developers need.

    python tools/runtime_lock.py requirements.lock             every package of the service
    python tools/runtime_lock.py requirements.lock setuptools  these packages alone

Who asked for a package is in the lock itself, in the comments that name its parents. Only the
standard library, since an image is built with it before anything is installed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_OURSELVES = "lakesplice (pyproject.toml)"
_PARENT = re.compile(r"^ +#(?: via)? +(?!via$)(\S.*)$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def pins(lock: str) -> list[tuple[str, str]]:
    """Return the lock's entries in order, each as name and text; markers may repeat a name."""
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", lock)
    return [(found.group(), entry) for entry in entries if (found := _NAME.match(entry))]


def named(lock: str, names: set[str]) -> str:
    """Return the entries of these packages; `KeyError` with what the lock doesn't have."""
    missing = names - {name for name, _ in pins(lock)}
    if missing:
        raise KeyError(", ".join(sorted(missing)))
    return "".join(entry for name, entry in pins(lock) if name in names)


def runtime_names(lock: str) -> set[str]:
    """Return what the project itself depends on, directly or through others."""
    parents = [(name, set(_PARENT.findall(entry))) for name, entry in pins(lock)]
    found = {_OURSELVES}
    while True:
        more = {name for name, asked_by in parents if asked_by & found} - found
        if not more:
            return found - {_OURSELVES}
        found |= more


def main(arguments: list[str]) -> int:
    """Print the part that the arguments ask for; 1 if the lock lacks a package."""
    lock = Path(arguments[0]).read_text(encoding="utf-8")
    try:
        sys.stdout.write(named(lock, set(arguments[1:]) or runtime_names(lock)))
    except KeyError as error:
        print(f"{arguments[0]} has no {error.args[0]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
