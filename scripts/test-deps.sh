#!/usr/bin/env bash
# Installs the Debian packages that the tests need, if they are missing.
set -euo pipefail

python=${PYTHON:-/usr/bin/python3}
missing=()

# need PACKAGE WHY COMMAND...: if the command fails, the package is missing.
need() {
  local package=$1 why=$2
  shift 2
  if ! "$@" >/dev/null 2>&1; then
    echo "missing: $package ($why)"
    missing+=("$package")
  fi
}

has_library() {
  PATH=$PATH:/sbin ldconfig -p | grep --fixed-strings "$1"
}

has_postgres() {
  command -v initdb || ls /usr/lib/postgresql/*/bin/initdb
}

need bubblewrap 'the tests run ffmpeg in its sandbox' command -v bwrap
need chromium 'the page is tested in a real browser' command -v "${CHROMIUM:-chromium}"
need curl 'the tests run the examples of the README' command -v curl
need ffmpeg 'recordings that are not WAV' command -v ffmpeg
need libopus0 'the training corpora are stored as Opus' has_library libopus.so.0
need postgresql 'the tests of the stores start their own PostgreSQL' has_postgres
need python3-venv 'the Python tests have their own environment' "$python" -c 'import ensurepip, venv'
need python3-torch 'the tests run the training recipe on a small scale' "$python" -c 'import torch'
need libopenblas0 'without it PyTorch is many times slower' has_library libopenblas.so.0

[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "The tests need these packages, but there is no apt-get to install them: ${missing[*]}" >&2
  echo "Install them, or their equivalents on this system, and run this again. (PYTHON selects another Python.)" >&2
  exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  # sudo may ask for a password, but not where nobody can type it.
  if ! { [ -t 0 ] && command -v sudo; } >/dev/null && ! sudo --non-interactive true 2>/dev/null; then
    echo "Ask an administrator to run this, then start the tests again: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "Installing with apt-get: ${missing[*]}"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get)
"${install[@]}" update -qq
# The tests create their own clusters, so keep Debian from creating and starting one.
if [[ " ${missing[*]} " == *' postgresql '* ]]; then
  "${install[@]}" install -qq --yes --no-install-recommends postgresql-common >/dev/null
  "${as_root[@]}" sed -ri 's/#?(create_main_cluster) .*$/\1 = false/' /etc/postgresql-common/createcluster.conf
fi
"${install[@]}" install -qq --yes --no-install-recommends "${missing[@]}" >/dev/null
