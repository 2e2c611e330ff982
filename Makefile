# make serve · site · test · notebooks · lint · lock      (each sets up what it needs)
.PHONY: serve site test notebooks lint lock setup
.DEFAULT_GOAL := serve
PY := .venv/bin/python
export PYTHON PORT

setup:
	@sh book/setup.sh

# Build both languages if anything changed, serve them, print the address
serve: setup
	@$(PY) -m book.site --serve

site: setup
	@$(PY) -m book.site

# Everything: the package, the book, every chapter against its stored outputs, the site in a browser
test: lint site
	$(PY) -m pytest -q tests/mha tests/book mha book/languages.py --doctest-modules
	$(PY) -m pytest -q --nbval --nbval-cell-timeout=300 -n 2 --dist loadscope chapters
	$(PY) -m pytest -q -n 2 tests/site

lint: setup
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

# Run chapters and store their outputs: make notebooks [CHAPTER=2-2-splitting]
notebooks: setup
	@$(PY) -m book.notebooks $(if $(CHAPTER),chapters/$(CHAPTER).ipynb)

# Pin what requirements.in asks for
lock: setup
	@$(PY) -m piptools compile -q --strip-extras --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-annotate -o requirements.txt requirements.in
	@sed -i.bak 's/^\(torch==[0-9.]*\)+.*/\1/' requirements.txt && rm requirements.txt.bak  # any build of torch
