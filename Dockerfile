# An image to read and run the book:
#   docker build -t mha-book .
#   docker run --rm -p 127.0.0.1:8000:8000 mha-book              the site, at http://127.0.0.1:8000/
#   docker run --rm -p 127.0.0.1:8888:8888 mha-book make lab     the notebooks, at the address it prints
# An index with CPU builds of torch saves 5 GB: --build-arg PIP_EXTRA_INDEX_URL=… (pytorch.org names it)

# The system's Python is the 3.11 of the lock; this stage is also the dev container
FROM debian:bookworm-slim AS base
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

FROM base
ARG PIP_EXTRA_INDEX_URL=""
ARG SOURCE_DATE_EPOCH=""
RUN useradd --uid 1000 --create-home reader
USER 1000
WORKDIR /home/reader/book
ENV PIP_NO_CACHE_DIR=1
# The lock first: a changed chapter does not install everything anew
COPY --chown=1000 requirements.txt pyproject.toml README.md LICENSE Makefile ./
COPY --chown=1000 book/setup.sh book/
COPY --chown=1000 mha mha
RUN make lab-ready
COPY --chown=1000 . .
RUN make site
ENV BOOK_HOST=0.0.0.0
EXPOSE 8000 8888
CMD ["make", "serve"]
