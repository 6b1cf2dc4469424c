"""`python -m aura_operator.cli`: the same as `aura`, where scripts aren't on the path."""

from aura_operator.cli import main

main(prog_name="aura")
