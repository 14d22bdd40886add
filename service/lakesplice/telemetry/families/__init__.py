"""Parts of the catalogue: metrics of topics, of tables' files, of compactions, and of comparisons
with the database. `catalogue.py` lists all of them; other modules don't import this folder.
"""
