"""JSON reading: reads many records of one shape at once, with proof that no record is misread.

Offers the conversion of texts to columns, the exact slow reading of one record, and the ledger of
verdicts. It must not know any format's members.
"""
