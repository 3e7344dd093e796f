"""What every backend of a port must do: one suite per port, run on each."""
