"""Live figures."""

from mha.widgets.explore import Explore, explore

__all__ = ["Explore", "explore"]
