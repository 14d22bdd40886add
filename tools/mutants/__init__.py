"""Mutation tests: faults put into the code on purpose, one at a time, that a test should notice.

`make mutants` draws mutants from a seed, newest code first (`choice.py`), of the kinds in
`sites.py`, in the folders where a fault would lose or damage data. `contexts.py` records which test
calls which function; `trial.py` runs those tests against each mutant in a copy of the checkout. A
test that fails there counts only if it passes without the mutant. What is known to change nothing
(`equivalent.py`) is not drawn.
"""
