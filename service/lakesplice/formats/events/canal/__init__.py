"""Change events of Canal as flat JSON messages, and of TiCDC in the same form.

`reader.py` reads a message's head and shape (`types.py` says what `mysqlType` means),
`absent_columns.py` proves that no column is absent, `block.py` makes the images.
"""

from lakesplice.formats.events.canal.reader import CANAL

__all__ = ["CANAL"]
