"""Shares of dead letters that are replayed by one commit each: bounded, and no group is divided."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.manifest import DeadLetterRef, FileRef
from lakesplice.table.ingest.dead_letter_groups import commit_shares

FILES = st.lists(
    st.tuples(st.integers(1, 10), st.frozensets(st.integers(0, 8), max_size=3)), max_size=12
)


@given(FILES, st.integers(1, 30))
def test_a_share_is_bounded_unless_a_group_joins_its_files(
    files: list[tuple[int, frozenset[int]]], bytes_max: int
) -> None:
    refs = [DeadLetterRef(FileRef(f"{at:02}", size, "0"), 1) for at, (size, _) in enumerate(files)]
    size_of = {ref.file.path: ref.file.bytes for ref in refs}
    groups_of = {ref.file.path: groups for ref, (_, groups) in zip(refs, files, strict=True)}

    shares = list(commit_shares(refs, lambda ref: groups_of[ref.file.path], bytes_max))

    in_order = [path for share in shares for path in sorted(share)]
    assert in_order == [ref.file.path for ref in refs]
    share_of = {path: at for at, share in enumerate(shares) for path in share}
    for group in range(9):
        assert len({share_of[path] for path in in_order if group in groups_of[path]}) <= 1
    for share in shares:
        paths = sorted(share)
        for at in range(1, len(paths)):
            before, behind = paths[:at], paths[at:]
            joined = frozenset[int]().union(*map(groups_of.__getitem__, before)) & frozenset[
                int
            ]().union(*map(groups_of.__getitem__, behind))
            size = sum(map(size_of.__getitem__, paths[: at + 1]))
            assert joined or size <= bytes_max
