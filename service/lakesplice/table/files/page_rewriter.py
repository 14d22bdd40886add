"""The page splice as the rewriter of a compaction. A file that it can't splice is rewritten
plainly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.errors import UnsupportedError
from lakesplice.formats.parquet import SYSTEM_VALUES, BaseReader, WrittenBase, delta_stats
from lakesplice.model.address import BaseFile
from lakesplice.model.names import POSITION_FILE
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import ComparedEdits, Edits
from lakesplice.splicing.comparing import compared
from lakesplice.splicing.operations import NewColumn, add_columns
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import OpenSink, Scratch, StreamSink
from lakesplice.splicing.splice import Spliced, splice
from lakesplice.splicing.structures.footer import MAGIC
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.table.files.plain_rewrite import PlainRewriter
from lakesplice.table.protocol.ports import Rewriter

FALLBACK = "fallback_"
WHOLE = "whole_"
BLOOM_FILTERS = "bloom_filters_dropped"


@dataclass(frozen=True)
class PageRewriter:
    """A `Rewriter` that copies the bytes of each page without an edited row; memory holds a few
    chunks.

    `open_sink` says how bytes are copied into the file that the store opened. The counts of the
    result (`WrittenBase.counts`) are

        pages_copied, pages_encoded, bytes_copied, bytes_encoded
        bloom_filters_dropped   if there were any
        whole_<reason>          the number of column chunks that were encoded whole for this reason
        fallback_<reason>       1 if the file was rewritten plainly for this reason
    """

    options: Options = field(default_factory=Options)
    open_sink: OpenSink = StreamSink
    fallback: Rewriter = field(default_factory=PlainRewriter)

    def compared(self, source: pa.NativeFile, file: BaseFile, edits: Edits) -> ComparedEdits:
        """See `Rewriter.compared`."""
        return compared(SourceFile(source, file.path), edits, self.options)

    def rewrite(
        self,
        source: pa.NativeFile,
        file: BaseFile,
        edits: Edits,
        schema: TableSchema,
        sink: pa.NativeFile,
    ) -> WrittenBase:
        """See `Rewriter.rewrite`; `UnsupportedError` if it turns out too late that a splice is
        impossible.
        """
        present = BaseReader(source, file, schema).names
        # A file of another writer may lack the system columns, too: then new ones follow the last.
        before = POSITION_FILE if POSITION_FILE in present else None
        added = [
            NewColumn(field, SYSTEM_VALUES.get(field.name), before)
            for field in schema.arrow
            if field.name not in present
        ]
        to, options = self.open_sink(sink), self.options
        try:
            if added:
                done = add_columns(source, file.path, added, edits, to, options)
            else:
                done = splice(source, file.path, edits, to, options)
        except UnsupportedError as error:
            if to.tell():
                raise  # found too late: the sink has the beginning of another file
            reason = str(error.facts.get("reason", "unsupported"))
            return self._plain(source, file, edits, schema, sink, reason)
        return WrittenBase(done.rows, stats_of(done, schema), done.pages_end, _counts(done))

    def _plain(
        self,
        source: pa.NativeFile,
        file: BaseFile,
        edits: Edits,
        schema: TableSchema,
        sink: pa.NativeFile,
        reason: str,
    ) -> WrittenBase:
        written = self.fallback.rewrite(source, file, edits, schema, sink)
        return replace(written, counts={FALLBACK + reason: 1})


def stats_of(done: Spliced, schema: TableSchema) -> str:
    """Return the log's statistics for a file that was written page by page."""
    return delta_stats(pq.read_metadata(pa.BufferReader(MAGIC + done.footer)), schema)


def _counts(done: Spliced) -> Mapping[str, int]:
    counts = {
        "pages_copied": done.pages_copied,
        "pages_encoded": done.pages_encoded,
        "bytes_copied": done.bytes_copied,
        "bytes_encoded": done.bytes_encoded,
    }
    if done.bloom_filters_dropped:
        counts[BLOOM_FILTERS] = done.bloom_filters_dropped
    for reason in done.columns_whole.values():
        counts[WHOLE + reason] = counts.get(WHOLE + reason, 0) + 1
    return counts


def best_rewriter(
    open_sink: OpenSink = StreamSink,
    threads: int = 1,
    open_scratch: Callable[[], Scratch] | None = None,
) -> Rewriter:
    """Return the fastest rewriter available. The files of all rewriters have the same content.

    `open_sink` copies bytes within the store. Columns are encoded by `threads` threads. New pages
    that don't fit into memory are kept in what `open_scratch` returns.
    """
    return PageRewriter(Options(threads=threads, open_scratch=open_scratch), open_sink)
