"""What a new file says about its values and its making, kept true."""
