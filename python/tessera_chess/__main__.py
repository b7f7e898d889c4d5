"""`python -m tessera_chess` runs the engine."""

from . import _tessera

_tessera()
