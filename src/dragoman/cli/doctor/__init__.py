"""`dragoman doctor`: an agent by its URL, or this installation."""
