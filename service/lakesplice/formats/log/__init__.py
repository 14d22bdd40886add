"""The Delta transaction log: actions, commit files, checkpoints and their replay.

Offers the log's state from its files, and the bytes of a new commit file. It must not know what is
in manifests, nor when a commit is allowed.
"""
