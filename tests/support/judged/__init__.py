"""Records of our own in the forms of other projects' fixtures, a module per project.

Each has `CASES`: by a fixture's name in docs/formats.md the records of its form (`Case`). A fixture
with several forms has several cases.
"""
