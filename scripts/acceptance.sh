#!/usr/bin/env bash
# Runs the benches one after another, even if some fail, and ends with a list of missed limits.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"

declare -A command=(
  [discrete]='node bench/discrete/run.ts'
  [asynch]='node bench/asynch/run.ts'
  [channels]='node bench/asynch/run.ts --channels 2'
  [fault-injection]='node bench/fault-injection/run.ts'
  [recovery]='node bench/recovery/run.ts'
  [recovery-several]='node bench/recovery/run.ts --postgres --s3'
  [backup]='node bench/backup/run.ts'
  [fairness]='node bench/fairness/run.ts'
  [fairness-several]='node bench/fairness/run.ts --postgres --s3'
  [volume]='node bench/volume/run.ts'
  [volume-postgres]='node bench/volume/run.ts --postgres'
  [scale]='node bench/scale/run.ts'
  [stream]='node bench/stream/run.ts'
  [existing-clients]='node bench/existing-clients/run.ts'
  [hostile]='node bench/hostile/run.ts'
  [client]='node bench/client/run.ts'
  [first-hour]='node bench/first-hour/run.ts'
  [packages]='node bench/packages/run.ts'
  [model]='node bench/model/run.ts'
  [docs]='make --no-print-directory try-docs'
  [deploy]='deploy/acceptance.sh'
  # Only if it is named: it takes an hour.
  [soak]='node bench/soak/run.ts'
)
order=(discrete asynch channels fault-injection recovery recovery-several backup fairness fairness-several volume volume-postgres
  scale stream existing-clients hostile client first-hour packages model docs deploy)
[ -n "${ONLY:-}" ] && IFS=, read -ra order <<<"$ONLY"

missed=()
for name in "${order[@]}"; do
  echo
  echo "=== $name"
  log=$(mktemp)
  # Unquoted, because a command has arguments.
  # shellcheck disable=SC2086
  ${command[$name]} 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  [ "$status" -eq 0 ] || missed+=("$name (exit code $status)" "$(grep '^MISSED' "$log")")
  rm "$log"
done

echo
if [ ${#missed[@]} -eq 0 ]; then
  echo "All limits met: ${order[*]}."
  exit 0
fi
printf '%s\n' 'Missed:' "${missed[@]}"
exit 1
