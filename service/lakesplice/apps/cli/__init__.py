"""The command line: `lakesplice`. Results go to standard output, everything else to standard error.

Exit codes are those of `EXIT_CODES`, which `lakesplice --help` shows. A message is one error
without its traceback, unless `--debug` is given.
"""

from lakesplice.apps.cli.app import main

__all__ = ["main"]
