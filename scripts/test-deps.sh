#!/usr/bin/env bash
# Installs the Debian packages the tests need beside npm's and Python's, but only those that are missing.
set -euo pipefail

python=${PYTHON:-/usr/bin/python3}
missing=()

# need PACKAGE WHY COMMAND...: the package is missing when the command fails.
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

need chromium 'the page is tested in a real browser' command -v "${CHROMIUM:-chromium}"
need curl 'the examples of the README are run' command -v curl
need ffmpeg 'recordings that are not WAV' command -v ffmpeg
need libopus0 'the training corpora are kept in Opus' has_library libopus.so.0
need postgresql 'the stores are tested over a PostgreSQL of their own' has_postgres
need python3-venv 'the Python tests have an environment of their own' "$python" -c 'import ensurepip, venv'
need python3-torch 'the training recipe is run on a small scale' "$python" -c 'import torch'
need libopenblas0 'without it PyTorch computes many times slower' has_library libopenblas.so.0

[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "The tests need these, and there is no apt-get to install them with: ${missing[*]}" >&2
  echo "Install them, or what they are called here, and run this again. (PYTHON names another Python.)" >&2
  exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Run this as root, then start the tests again: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "Installing with apt-get: ${missing[*]}"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get)
"${install[@]}" update -qq
# The tests have clusters of their own: none of Debian's is to be made and started beside them.
if [[ " ${missing[*]} " == *' postgresql '* ]]; then
  "${install[@]}" install -qq --yes --no-install-recommends postgresql-common >/dev/null
  "${as_root[@]}" sed -ri 's/#?(create_main_cluster) .*$/\1 = false/' /etc/postgresql-common/createcluster.conf
fi
"${install[@]}" install -qq --yes --no-install-recommends "${missing[@]}" >/dev/null
