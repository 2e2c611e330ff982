#!/bin/sh
# Makes .venv and installs the lock, once: sh book/setup.sh. A re-run heals a half-made .venv.
set -u
cd "$(dirname "$0")/.." || exit 1
VENV=.venv
wanted=$(cat requirements.txt pyproject.toml book/setup.sh | cksum)

say() { printf 'setup: %s\n' "$*"; }
fail() { printf '\nsetup: %s\n' "$*" >&2; exit 1; }

if [ -f "$VENV/ready" ] && [ "$(cat "$VENV/ready")" = "$wanted" ] && "$VENV/bin/python" -c '' 2>/dev/null; then
    exit 0
fi

# The lock was made on 3.11; the same set installs on 3.12 and 3.13
for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 || continue
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
        found=$candidate
        break
    fi
done
[ -n "${found:-}" ] || fail "no Python 3.11, 3.12 or 3.13 found. Install one (on Debian: apt install python3 python3-venv), or name it: make PYTHON=/path/to/python3.11 serve"

if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    say "making $VENV with $("$found" --version)"
    rm -rf "$VENV"
    "$found" -m venv "$VENV" >/dev/null 2>&1 && "$VENV/bin/python" -m pip --version >/dev/null 2>&1 ||
        fail "$found could not make a virtual environment. On Debian install python3-venv, then run this again"
fi

say "installing the lock (requirements.txt); torch makes this a few minutes the first time"
"$VENV/bin/python" -m pip install --disable-pip-version-check --progress-bar off -q -r requirements.txt 2>"$VENV/pip.log" ||
    { tail -n 8 "$VENV/pip.log" >&2; fail "pip could not install requirements.txt. Check the network (and a proxy or mirror in pip's settings), then run this again; what is installed already is kept"; }
"$VENV/bin/python" -m pip install --disable-pip-version-check -q --no-deps -e . 2>"$VENV/pip.log" ||
    { tail -n 8 "$VENV/pip.log" >&2; fail "pip could not install the mha package from this folder; see above"; }
printf '%s' "$wanted" >"$VENV/ready"
say "ready"
