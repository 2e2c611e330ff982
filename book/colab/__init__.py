"""Notebooks away from home: their first cell, Colab's versions, and the run that proves both."""
