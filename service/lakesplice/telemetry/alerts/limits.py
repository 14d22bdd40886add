"""The numbers that thresholds of alerts follow. Rules are written twice: with the numbers of
settings, and with formulas, from which the chart computes the numbers of what it is given.
"""

from __future__ import annotations

from dataclasses import dataclass

# A batch takes some seconds, however short the trigger is.
_BATCH_SECONDS = 60.0
# Neither character is in any rule.
HOLE, END = "\u27e6", "\u27e7"
"""What a formula is written between, in the text of rules."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, of seconds where it is a time.

    `formula` says in the language of Helm's templates how it follows from a setting; empty: the
    number is known. Of an amount with a formula `value` means nothing.
    """

    value: float
    formula: str = ""

    def __rmul__(self, factor: float) -> Amount:
        """Return the product."""
        return self._made(factor * self.value, f"mulf {factor:.15g} {self._operand}")

    def at_least(self, least: float) -> Amount:
        """Return this number, or the other one if that is larger."""
        return self._made(max(least, self.value), f"maxf {least:.15g} {self._operand}")

    def missing_to_one(self) -> Amount:
        """Return what a share lacks."""
        return self._made(1 - self.value, f"subf 1.0 {self._operand}")

    @property
    def _operand(self) -> str:
        return self.formula if self.formula.startswith("$") else f"({self.formula})"

    def _made(self, value: float, formula: str) -> Amount:
        return Amount(value, formula if self.formula else "")


def hole(written_by: str, formula: str) -> str:
    """Return the placeholder in a rule that a template of the chart replaces by a formula's
    value.
    """
    return f'{HOLE}include "{written_by}" ({formula}){END}'


@dataclass(frozen=True, slots=True)
class AlertLimits:
    """Values of settings, in seconds where they are times. `objective` is the share of 30 days in
    which a view is to keep its freshness goal; `runbooks` is the address of the operations page.
    """

    trigger: Amount
    lease: Amount
    age_max: Amount
    back_pressure_deltas: Amount
    runs_max: Amount
    checkpoint_every: Amount
    merge_files_max: Amount
    vacuum_every: Amount
    objective: Amount
    runbooks: str

    @property
    def batch_seconds_max(self) -> Amount:
        """How long a batch may take."""
        return self.trigger.at_least(_BATCH_SECONDS)

    @property
    def silence_seconds_max(self) -> Amount:
        """How long the service may be without the end of a batch: three triggers."""
        return 3 * self.batch_seconds_max
