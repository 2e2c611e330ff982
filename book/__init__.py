"""How the notebooks in chapters/ become sites: language, Sphinx extension, build, serve."""
