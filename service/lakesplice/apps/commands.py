"""Commands that change a table: they take a generation first, so never beside a living driver."""

from __future__ import annotations
