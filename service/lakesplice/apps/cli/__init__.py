"""The command line: `lakesplice`. Results go to standard output, everything else to standard error.

Exit codes: 0 done; 1 it could not be done, the message says why; 2 the command or the configuration
is wrong. A message is one error without its traceback, unless `--debug` is given.
"""

from lakesplice.apps.cli.app import main

__all__ = ["main"]
