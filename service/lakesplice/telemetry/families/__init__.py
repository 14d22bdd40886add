"""Parts of the catalogue: metrics of topics, of tables' files, of compactions, and of comparisons
with the database. `catalogue.py` names them all; nothing else is imported from here.
"""
