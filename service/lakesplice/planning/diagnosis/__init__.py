"""What is right, wrong, or to be changed of what Lakesplice stands on: facts in, findings out.

`finding.py` has what all judgements give. Each other module has the facts that can be met of one
neighbour (broker, topics, records, connector, database, registry, store, machine) and judges
them. Facts are gathered elsewhere (`apps/doctor/`); docs/doctor.md lists every check.
"""
