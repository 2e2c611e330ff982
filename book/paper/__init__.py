"""The book away from the web: a PDF and an EPUB of each language, and a zip of the site."""
