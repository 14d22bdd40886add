"""The command line: `lakesplice`. Results go to standard output, everything else to standard error.

Exit codes are those of `EXIT_CODES`, which `lakesplice --help` shows. Of an error only the message
is shown, without a traceback unless `--debug` is given.
"""

from lakesplice.apps.cli.app import main

__all__ = ["main"]
