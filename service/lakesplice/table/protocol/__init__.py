"""Protocol: intents, their preconditions, their transitions, and the commit that carries one out.

Offers snapshots of a table at a version, commits, and the ports that adapters implement. It must
not know what is in the files that it names.
"""
