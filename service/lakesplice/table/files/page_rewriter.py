"""The page splice as compaction's rewriter; what it can't do falls back to the plain rewrite."""

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
    """`Rewriter` that copies pages without an edited row as bytes; memory holds a few chunks.

    `open_sink` says how bytes are copied into what the store opened. `WrittenBase.counts` has
    `pages_copied`, `pages_encoded`, `bytes_copied`, `bytes_encoded`, `bloom_filters_dropped` if any
    were, for each reason why chunks were encoded whole `whole_<reason>`, the columns, and for each
    why a file was rewritten plainly `fallback_<reason>`, 1.
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
        """See `Rewriter.rewrite`; `UnsupportedError` where it shows too late that it can't be."""
        present = BaseReader(source, file, schema).names
        # A file that others wrote may lack system columns, too: then all go behind the last.
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
    """Return the log's statistics of a file that was written page by page."""
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
    """Return the fastest rewriter there is; all write files that hold the same.

    `open_sink` copies bytes within the store; columns are encoded by `threads` threads; new
    pages that are too many to be held in memory wait in what `open_scratch` returns.
    """
    return PageRewriter(Options(threads=threads, open_scratch=open_scratch), open_sink)
