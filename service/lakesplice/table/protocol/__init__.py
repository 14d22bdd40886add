"""Protocol: intents, what must hold for each, and the commit that carries one out.

Offers snapshots of a table at a version, commits, and the ports that adapters implement. It must
not know what files hold: it names them.
"""
