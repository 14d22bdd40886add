"""Where a lake's bytes are: adapters of the store interface in table/protocol/ports.py."""
