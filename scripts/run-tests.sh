#!/usr/bin/env bash
# Runs all tests at the same time, each runner to its end. The Node tests print as they go, the others when they are done.
set -uo pipefail
cd "$(dirname "$0")/.."

logs=$(mktemp -d)
trap 'rm -r "$logs"' EXIT
names=() pids=()

# run NAME COMMAND...
run() {
  local name=$1
  shift
  "$@" >"$logs/$name" 2>&1 &
  names+=("$name") pids+=($!)
}

# The Python client is one long chain of tests: it gets its share of the processor from the start. The others fill the time in
# which the Node tests wait for something.
run 'Python client' env --chdir=clients/python .venv/bin/python -m pytest --quiet
run 'style and types' nice -n 5 npm run --silent check
# One thread: with more, PyTorch keeps the cores of the other tests busy with waiting.
run 'training' nice -n 5 env OMP_NUM_THREADS=1 .venv/bin/python -m pytest --quiet training/tests

# Some tests mount a small disk. Without root, a user namespace allows that; where it is forbidden, those tests fail and say so.
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  as_root=(unshare --user --map-root-user --mount)
  "${as_root[@]}" true || as_root=()
fi

failed=()
"${as_root[@]}" npm run --silent test:node || failed+=(Node)
for i in "${!pids[@]}"; do
  wait "${pids[$i]}" || failed+=("${names[$i]}")
  printf '\n=== %s\n' "${names[$i]}"
  cat "$logs/${names[$i]}"
done

[ ${#failed[@]} -eq 0 ] && exit 0
printf '\nFailed: '
printf '%s. ' "${failed[@]}"
echo
exit 1
