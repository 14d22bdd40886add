"""Change events of Maxwell's daemon.

`json_columns.py` makes texts of MySQL's JSON, `reader.py` reads a record's head and shape
(`ddl_types.py` knows the types at its position, `types.py` says how Maxwell writes one), `keys.py`
names the key, `before_values.py` finds out what `old` holds, `block.py` makes the images.
"""

from lakesplice.formats.events.maxwell.reader import MAXWELL

__all__ = ["MAXWELL"]
