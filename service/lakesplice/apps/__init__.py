"""What wires everything together: the service and the command line."""
