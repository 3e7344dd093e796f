"""What lets a program be an agent and call agents, whatever dialect the other side speaks. `dragoman` re-exports it."""
