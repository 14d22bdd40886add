"""Builds the documentation as a site in build/site/html, and refuses links that lead nowhere.

Run: python tools/documentation.py

The pages are the repository's own Markdown files in their places, with what they link to beside
them, so that they can be read on the site, in an editor and on the forge alike.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "site" / "pages"
_LINK = re.compile(r"\]\(([^)#\s]+)")
_SECONDS_MAX = 120


def sources() -> list[Path]:
    """Return the Markdown files that are pages."""
    below = (ROOT / folder for folder in ("docs", "deploy", "helm"))
    return sorted(
        [*ROOT.glob("*.md"), *(page for folder in below for page in folder.rglob("*.md"))]
    )


def linked(page: Path) -> Iterator[Path]:
    """Yield the files of the repository that a page links to and that are no pages."""
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        file = (page.parent / target).resolve()
        if file.is_file() and file.suffix != ".md" and ROOT in file.parents:
            yield file


def stage() -> None:
    """Copy the pages and what they link to, each to its place below `PAGES`."""
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = sources()
    for file in {*pages, *(file for page in pages for file in linked(page))}:
        copy = PAGES / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


def build() -> str:
    """Build the site of what is staged; return what is wrong with it, empty if nothing is."""
    # Not with `--quiet`, by which broken links are no error any more.
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
    )
    return done.stderr if done.returncode else ""


def main() -> int:
    """Stage and build; print each broken link, and return 1 if there is one."""
    stage()
    wrong = build()
    print(wrong or f"built {PAGES.with_name('html').relative_to(ROOT)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
