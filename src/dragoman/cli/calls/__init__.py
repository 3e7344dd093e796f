"""`dragoman call`: what is wanted, how it is called, and how what comes of it is shown."""
