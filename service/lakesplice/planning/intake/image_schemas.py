"""What a partition's row images show of the source's schema: which fit, and where to stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.model.arrays import Integers
from lakesplice.model.position import Position
from lakesplice.model.progress.column_presence import ColumnPresences
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.intake.known_topic import PartitionStop
from lakesplice.planning.intake.order.record_order import RecordIndex, first_from
from lakesplice.planning.rows.image_changes import to_changes
from lakesplice.planning.schema.evolution import (
    Fits,
    SchemaFit,
    Unfit,
    fit,
    fit_as_new,
    in_time,
    plan_evolution,
)
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.schema.shard_columns import (
    FittingChanges,
    ObservedColumn,
    judge,
    observed_after,
    presences_after,
)


class ImageSchemas:
    """The schemas of one partition's images, compared with its table's; not thread-safe.

    `presences` is what is known of the columns of the topic's shard; None if the table has none.
    """

    def __init__(
        self, schema: TableSchema, policy: SchemaPolicy, presences: ColumnPresences | None
    ) -> None:
        self.schema = schema
        self.first_schema: TableSchema | None = None
        self.new_schemas: list[tuple[Position, SourceSchema]] = []
        self.observed_columns: dict[int, ObservedColumn] = {}
        self._policy = policy
        self._known_presences = presences
        self._presences = presences
        self._fits: dict[SourceSchema, SchemaFit] = {}

    def follow_schema(self, first_schema: TableSchema) -> None:
        """Take the schema that another partition of the topic found for a table without columns,
        unless this partition has found its own.
        """
        if self.first_schema is None and not self.schema.columns:
            self.schema = self.first_schema = first_schema
            self._fits.clear()

    def fit(self, image: SourceSchema) -> SchemaFit:
        """Return how an image fits the table's schema."""
        verdict = self._fits.get(image)
        if verdict is None:
            verdict = self._fits[image] = fit(
                self.schema, image, self._policy, self._known_presences
            )
        return verdict

    def take_first_schema(
        self, blocks: Sequence[ImageBlock], files: Sequence[Integers], limit: RecordIndex
    ) -> None:
        """Use the schema of the first image before `limit` for a table without columns.

        The driver creates the table from what all partitions found, and retries the batch if that
        is another schema. Which columns a shard has is known only to the driver.
        """
        if self.schema.columns or self._known_presences is not None:
            return
        met = [(int(b.rows[0]), at) for at, b in enumerate(blocks) if int(b.rows[0]) < limit]
        if not met:
            return
        at = min(met)[1]
        position = Position(int(files[at][0]), int(blocks[at].position_offset[0]))
        seen = [(position, blocks[at].schema)]
        schema, _ = plan_evolution(self.schema, seen, self._policy)
        if schema.columns:
            self.schema = self.first_schema = schema
            self._fits.clear()

    def stops(
        self, blocks: Sequence[ImageBlock], files: Sequence[Integers], limit: RecordIndex
    ) -> Iterator[PartitionStop]:
        """Yield for each block the first record before `limit` whose image doesn't fit."""
        for block, file in zip(blocks, files, strict=False):
            count = int(np.searchsorted(block.rows, limit))
            if not count:
                continue
            verdict, first = self.fit(block.schema), 0
            if isinstance(verdict, Fits):
                late = first_from(file[:count], block.position_offset[:count], verdict.until)
                if late is None:
                    if self.first_schema is not None:
                        self._add_new_schema(block, file, (count - 1, first))
                    continue
                verdict, first = fit_as_new(self.schema, block.schema, self._policy), late
            position = self._add_new_schema(block, file, (count - 1, first))
            verdict = in_time(verdict, self.schema, block.schema, position, self._policy)
            unfit_code = verdict.code if isinstance(verdict, Unfit) else None
            detail = verdict.detail if isinstance(verdict, Unfit) else ""
            yield PartitionStop(RecordIndex(int(block.rows[first])), unfit_code, detail)

    def column_stops(
        self, blocks: Sequence[ImageBlock], files: Sequence[Integers], limit: RecordIndex
    ) -> list[PartitionStop]:
        """Return the records of a shard before `limit` that contradict what is known of its
        columns.
        """
        if self._presences is None:
            return []
        images = []
        for block, file in zip(blocks, files, strict=False):
            verdict, count = self.fit(block.schema), int(np.searchsorted(block.rows, limit))
            if isinstance(verdict, Fits) and count:
                offset = block.position_offset[:count]
                fitting = block.schema, verdict.mapping, block.rows[:count], file[:count], offset
                images.append(FittingChanges(*fitting))
        judged = judge(self.schema, images, self._presences, self._policy)
        self._presences = presences_after(self._presences, [judged.observed_columns])
        self.observed_columns = observed_after(self.observed_columns, judged.observed_columns)
        return [PartitionStop(RecordIndex(record), *why) for record, why in judged.stops]

    def changes(
        self, blocks: Sequence[ImageBlock], files: Sequence[Integers], limit: RecordIndex
    ) -> list[tuple[Integers, pa.Table]]:
        """Return the changes that may be applied, per block, with the indexes of their records."""
        found = []
        for block, file in zip(blocks, files, strict=False):
            verdict = self.fit(block.schema)
            count = int(np.searchsorted(block.rows, limit))
            if isinstance(verdict, Fits) and count:
                changes = to_changes(
                    block,
                    self.schema,
                    verdict.mapping,
                    file,
                    partial=verdict.partial,
                    presences=self._presences,
                )
                found.append((block.rows[:count], changes.slice(0, count)))
        return found

    def _add_new_schema(self, block: ImageBlock, file: Integers, rows: Sequence[int]) -> Position:
        """Record that these rows of a block have images of a schema; return the position of the
        last one.
        """
        positions = [Position(int(file[at]), int(block.position_offset[at])) for at in rows]
        self.new_schemas += [(position, block.schema) for position in positions]
        return positions[-1]
