"""`python -m tessera_chess` is the engine."""

from . import _tessera

_tessera()
