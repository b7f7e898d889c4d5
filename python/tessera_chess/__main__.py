"""`python -m tessera_chess` runs the engine."""

from .programs import tessera

tessera()
