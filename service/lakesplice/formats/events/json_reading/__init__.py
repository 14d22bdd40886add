"""JSON reading: many records of one shape read at once, with proof that no record is misread.

Offers texts to columns, the exact slow reading of one record, and the account of what became of
each record. It must not know any format's members.
"""
