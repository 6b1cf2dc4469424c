"""The controller's concerns, a module each: gather, decide by a pure function, write, say when to look again."""
