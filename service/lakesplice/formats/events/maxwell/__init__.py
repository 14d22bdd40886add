"""Change events of Maxwell's daemon.

`json_columns.py` converts MySQL's JSON to text. `reader.py` reads a record's head and shape;
`ddl_types.py` has the types at its position, `types.py` how Maxwell writes each type. `keys.py`
finds the key, `before_values.py` what `old` contains, and `block.py` makes the images.
"""

from lakesplice.formats.events.maxwell.reader import MAXWELL

__all__ = ["MAXWELL"]
