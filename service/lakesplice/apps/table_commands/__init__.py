"""Commands that change a table, whoever gives them: the command line or another program.

Offers how a command is asked of the running driver or done without one, and what each does. It
must not know the service, which executes them too.
"""
