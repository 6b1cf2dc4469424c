"""One task in a worker's hands: opened, run command by command, written down, handed on. Knows no slots, no claims."""
