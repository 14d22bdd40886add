"""Judges what Lakesplice depends on: facts in, findings out.

`finding.py` has the result type of all checks. Each other module has the facts about one system
(broker, topics, records, connector, database, registry, store, machine) and judges them.
`apps/doctor/` gathers the facts; docs/doctor.md lists every check.
"""
