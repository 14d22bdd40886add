"""Commands that change a table, given by the command line or by another program.

Offers how a command is sent to the running driver, or executed here if no driver runs, and what
each command does. It must not know the service, which executes them, too.
"""
