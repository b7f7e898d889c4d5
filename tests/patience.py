"""How long tests wait for anything."""

# Seconds after which something counts as hung, far more than the busiest machine needs.
PATIENCE = 600
