"""The Delta transaction log: actions, commit files, checkpoints and their replay."""
