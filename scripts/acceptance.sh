#!/usr/bin/env bash
# Runs the benches one after another, whatever becomes of each, and ends with what was missed.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"

declare -A command=(
  [discrete]='bench/discrete/run.ts'
  [asynch]='bench/asynch/run.ts'
  [channels]='bench/asynch/run.ts --channels 2'
  [call]='bench/call/run.ts'
  [webhooks]='bench/webhooks/run.ts'
  [resume]='bench/resume/run.ts'
  [bad-days]='bench/bad-days/run.ts'
  [recovery]='bench/recovery/run.ts'
  [stream]='bench/stream/run.ts'
  [existing-clients]='bench/existing-clients/run.ts'
  [hostile]='bench/hostile/run.ts'
  [client]='bench/client/run.ts'
  [first-hour]='bench/first-hour/run.ts'
  [model]='bench/model/run.ts'
)
order=(discrete asynch channels call webhooks resume bad-days recovery stream existing-clients hostile client first-hour model)
[ -n "${ONLY:-}" ] && IFS=, read -ra order <<<"$ONLY"

missed=()
for name in "${order[@]}"; do
  echo
  echo "=== $name"
  log=$(mktemp)
  # Unquoted: a command may have options.
  # shellcheck disable=SC2086
  node ${command[$name]} 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  [ "$status" -eq 0 ] || missed+=("$name (exit code $status)" "$(grep '^MISSED' "$log")")
  rm "$log"
done

echo
if [ ${#missed[@]} -eq 0 ]; then
  echo "Every limit of ${order[*]} was met."
  exit 0
fi
printf '%s\n' 'Missed:' "${missed[@]}"
exit 1
