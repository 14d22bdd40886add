"""Names of a table's files, relative to its folder, and of the lake's own files.

Each attempt uses a new random name, and no name is used twice. Readers of the log skip names that
start with an underscore. Source: docs/format.md, "Folders".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from lakesplice.model.address import Partition, group_name
from lakesplice.model.names import HIVE_NULL
from lakesplice.table.protocol.ports import Entropy

LOG = "_delta_log"
LAST_CHECKPOINT = f"{LOG}/_last_checkpoint"
BASE = "base"
DELTAS = "_lakesplice/deltas"
INDEX = "_lakesplice/index"
MANIFESTS = "_lakesplice/manifests"
PINS = "_lakesplice/pins"
ERASED = "_lakesplice/erased"
SHADOWS = "_lakesplice/shadows"
MIRRORS = "_lakesplice/iceberg"
CHANGE_DATA = "_change_data"  # where Delta wants it
DEAD_LETTERS = "_lakesplice/dead_letters"
GENERATIONS = "_lakesplice/generations"
HEARTBEATS = "_lakesplice/heartbeats"
REQUESTS = "_lakesplice/requests"
ANSWERS = "_lakesplice/answers"
STATUS = "_lakesplice/status"
DOCTOR = "_lakesplice/doctor"
GROUPS = "_lakesplice/groups"

_RANDOM_BITS = 64
_BASE = re.compile(rf"{BASE}/(?:[^/]+=[^/]+/)*[0-9a-f]{{16}}-\d+-[0-9a-f]{{16}}\.parquet")
# Most file systems refuse longer names of folders.
_NAME_BYTES_MAX = 255
# A name in a bucket has at most 1,024 bytes, and the lake's address and the file's name need some.
_FOLDER_BYTES_MAX = 700
_COMMIT = re.compile(rf"{LOG}/(\d{{20}})\.json")
_MANIFEST = re.compile(rf"{MANIFESTS}/(\d{{20}})-[0-9a-f]+\.json")


def base_path(group: int, splices: int, entropy: Entropy, folder: str = "") -> str:
    """A base file's name: its first file group, how often it was rewritten, a random part.

    `folder` is what `partition_folder` gives.
    """
    return f"{BASE}/{folder}{group_name(group)}-{splices}-{random_name(entropy)}.parquet"


def partition_folder(columns: Sequence[str], partition: Partition) -> str:
    """The folders of a partition, as Hive names them: `country=de/`, each followed by a slash.

    Delta readers take the values from the log, but Polars takes them from these names. If a value
    makes a name too long, there are no folders, and Polars refuses the table. The same holds if all
    names together are too long.
    """
    names = [
        f"{quote(column, safe='')}={HIVE_NULL if value is None else quote(value, safe='')}"
        for column, value in zip(columns, partition, strict=True)
    ]
    folder = "".join(f"{name}/" for name in names)
    too_long = any(len(name) > _NAME_BYTES_MAX for name in names)
    return "" if too_long or len(folder) > _FOLDER_BYTES_MAX else folder


def is_base_path(path: str) -> bool:
    """Whether a file has a name as `base_path` draws it."""
    return _BASE.fullmatch(path) is not None


def delta_path(entropy: Entropy) -> str:
    """A delta's name."""
    return f"{DELTAS}/{random_name(entropy)}.parquet"


def run_path(entropy: Entropy) -> str:
    """The name of a run of the row index."""
    return f"{INDEX}/{random_name(entropy)}.run"


def change_data_path(entropy: Entropy) -> str:
    """The name of a file of row images for the change feed."""
    return f"{CHANGE_DATA}/{random_name(entropy)}.parquet"


def dead_letter_path(entropy: Entropy) -> str:
    """The name of a file of dead letters."""
    return f"{DEAD_LETTERS}/{random_name(entropy)}.avro"


def manifest_path(version: int, entropy: Entropy) -> str:
    """A manifest's name. It starts with the only version of the log that can name it."""
    return f"{MANIFESTS}/{version:020d}-{random_name(entropy)}.json"


def manifest_version(path: str) -> int | None:
    """Read the version from a manifest's name; None if it isn't one."""
    match = _MANIFEST.fullmatch(path)
    return int(match[1]) if match else None


def pinned_path(entropy: Entropy) -> str:
    """The name of the copy of a pinned version's manifest."""
    return f"{PINS}/{random_name(entropy)}.json"


def erased_path(entropy: Entropy) -> str:
    """The name of a file of erased keys."""
    return f"{ERASED}/{random_name(entropy)}.json"


def lake_pin_path(name: str) -> str:
    """The file of a lake's pin, in the lake's own folder."""
    return f"{PINS}/{name}.json"


def commit_path(version: int) -> str:
    """The log's commit file of a version."""
    return f"{LOG}/{version:020d}.json"


def commit_version(path: str) -> int | None:
    """Read the version from a commit file's name; None if it isn't one."""
    match = _COMMIT.fullmatch(path)
    return int(match[1]) if match else None


def generation_path(generation: int) -> str:
    """The lake's record of a driver's generation."""
    return f"{GENERATIONS}/{generation:020d}.json"


def release_path(generation: int) -> str:
    """The lake's record that the driver of a generation ended in order."""
    return f"{GENERATIONS}/{generation:020d}.released"


def heartbeat_path(generation: int, beat: int) -> str:
    """One heartbeat of a generation's driver."""
    return f"{HEARTBEATS}/{generation:020d}/{beat:020d}"


def request_path(request: str) -> str:
    """A command's request to the lake's driver."""
    return f"{REQUESTS}/{request}.json"


def group_path(group: str) -> str:
    """The mark that this lake's driver has written the offsets of a consumer group."""
    return f"{GROUPS}/{group}"


def answer_path(request: str) -> str:
    """The driver's answer."""
    return f"{ANSWERS}/{request}.json"


def probe_path(entropy: Entropy) -> str:
    """An empty file in the log's folder, which is written to find out whether it can be."""
    return f"{LOG}/_lakesplice_probe_{random_name(entropy)}"


def examination_path(entropy: Entropy) -> str:
    """The file by which `lakesplice doctor` finds out what the store can do; it is deleted
    afterwards.
    """
    return f"{DOCTOR}/{random_name(entropy)}"


def status_path(generation: int, number: int) -> str:
    """One status document of a generation's driver."""
    return f"{STATUS}/{generation:020d}/{number:020d}.json"


def random_name(entropy: Entropy) -> str:
    """Return 16 hexadecimal digits that name nothing else."""
    return f"{entropy.bits(_RANDOM_BITS):0{_RANDOM_BITS // 4}x}"
