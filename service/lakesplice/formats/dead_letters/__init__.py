"""Dead letters: Avro object container files of records that couldn't be decoded, byte for byte.

Offers their encoding and decoding. It must not know more about a refused record than the stored
reason, nor what happens to it.
"""

from lakesplice.formats.dead_letters.codec import (
    DEAD_LETTER_SCHEMA,
    decode_dead_letters,
    encode_dead_letters,
)

__all__ = ["DEAD_LETTER_SCHEMA", "decode_dead_letters", "encode_dead_letters"]
