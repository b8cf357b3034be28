#!/usr/bin/env bash
# Runs the benches one after another, whatever becomes of each, and ends with what was missed.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"

declare -A command=(
  [discrete]='node bench/discrete/run.ts'
  [asynch]='node bench/asynch/run.ts'
  [channels]='node bench/asynch/run.ts --channels 2'
  [call]='node bench/call/run.ts'
  [webhooks]='node bench/webhooks/run.ts'
  [resume]='node bench/resume/run.ts'
  [bad-days]='node bench/bad-days/run.ts'
  [recovery]='node bench/recovery/run.ts'
  [recovery-several]='node bench/recovery/run.ts --postgres --s3'
  [scale]='node bench/scale/run.ts'
  [stream]='node bench/stream/run.ts'
  [existing-clients]='node bench/existing-clients/run.ts'
  [hostile]='node bench/hostile/run.ts'
  [client]='node bench/client/run.ts'
  [first-hour]='node bench/first-hour/run.ts'
  [model]='node bench/model/run.ts'
  [deploy]='deploy/acceptance.sh'
)
order=(discrete asynch channels call webhooks resume bad-days recovery recovery-several scale stream existing-clients hostile client
  first-hour model deploy)
[ -n "${ONLY:-}" ] && IFS=, read -ra order <<<"$ONLY"

missed=()
for name in "${order[@]}"; do
  echo
  echo "=== $name"
  log=$(mktemp)
  # Unquoted: a command has arguments.
  # shellcheck disable=SC2086
  ${command[$name]} 2>&1 | tee "$log"
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
