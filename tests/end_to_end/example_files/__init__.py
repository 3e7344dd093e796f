"""The examples of the specifications, each sent or produced as the index of the examples says."""
