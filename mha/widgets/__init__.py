"""Live figures: `explore` for any function that draws, `lab` for the five steps by hand."""

from mha.widgets.explore import Explore, explore
from mha.widgets.lab import lab, lab_model

__all__ = ["Explore", "explore", "lab", "lab_model"]
