#!/usr/bin/env bash
# Tests the files in this folder as far as one machine can; README.md says what is tested. Needs Debian and root.
# Leaves nothing behind but the Debian packages it installs. PARTS=compose,alerts tests only these; KEEP=FOLDER caches the base and
# the layers of the image there.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH:/usr/sbin:/sbin"
parts=${PARTS:-image,compose,proxy,pgbouncer,outage,rolling,kubernetes,systemd,alerts}
work=${KEEP:-$(mktemp --directory /var/tmp/undertone-deploy-XXXXXX)}
[ -n "${KEEP:-}" ] || trap 'rm -rf --one-file-system "$work"' EXIT

# Runs a command in its own namespaces, with a loopback network. Its mounts, processes and sockets disappear with it.
isolated() {
  unshare --mount --net --pid --mount-proc --fork --kill-child -- bash -euo pipefail -c 'ip link set lo up; "$@"' isolated "$@"
}
export -f isolated

needs() {
  local missing=()
  for package in "$@"; do
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep --quiet '^installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  echo "Installing with apt-get: ${missing[*]}"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "${missing[@]}" >/dev/null
}

# Unpacks Debian's package into a folder of its name, because installing it would start a server.
unpack() {
  (cd "$work" && { apt-get download -qq "$1" 2>/dev/null || { apt-get update -qq && apt-get download -qq "$1"; }; } &&
    dpkg --extract "$1"_*.deb "$1")
}

base_image() {
  debootstrap --variant=minbase --include=ca-certificates bookworm "$work/base" >"$work/debootstrap.log" ||
    { tail "$work/debootstrap.log"; return 1; }
  # Certificate authorities of the local network, if any.
  cp --recursive /usr/local/share/ca-certificates "$work/base/usr/local/share/"
  TMPDIR=/tmp chroot "$work/base" update-ca-certificates >"$work/certificates.log" 2>&1 ||
    { tail "$work/certificates.log"; return 1; }
  container=$("${buildah[@]}" from scratch)
  "${buildah[@]}" add --quiet "$container" "$work/base" / >/dev/null
  "${buildah[@]}" commit --quiet "$container" undertone-base >/dev/null
}

image() {
  needs buildah debootstrap iproute2 curl
  mkdir --parents "$work/storage" "$work/run"
  export BUILDAH_ISOLATION=chroot TMPDIR="$work"
  buildah=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs)
  "${buildah[@]}" inspect --type image undertone-base >/dev/null 2>&1 || base_image
  "${buildah[@]}" build --quiet --layers --format docker --file deploy/Dockerfile --from localhost/undertone-base --tag undertone . \
    >"$work/build.log" 2>&1 || { tail -30 "$work/build.log"; return 1; }
  container=$("${buildah[@]}" from undertone)
  root=$("${buildah[@]}" mount "$container")
  "${buildah[@]}" inspect --type image undertone | node deploy/image-config.ts >"$work/image.env"
  size() { du --summarize --human-readable "$1" | cut --fields=1; }
  echo "Built for $(uname --machine): $(size "$root") in total, $(size "$root/app") of it the service."
  root=$root config=$work/image.env isolated bash deploy/try-image.sh
}

compose() {
  needs iproute2 postgresql
  WORK=$work isolated bash -c 'printf "127.0.0.1 localhost postgres s3\n" >"$WORK/hosts" &&
    mount --bind "$WORK/hosts" /etc/hosts && exec node deploy/try-compose.ts'
}

proxy() {
  needs iproute2 curl openssl
  unpack nginx
  WORK=$work isolated bash -c 'printf "127.0.0.1 localhost voice.example.org\n" >"$WORK/hosts" &&
    mount --bind "$WORK/hosts" /etc/hosts && NGINX_PROGRAM=$WORK/nginx/usr/sbin/nginx exec node deploy/try-proxy.ts'
}

pgbouncer() {
  needs postgresql libc-ares2 libevent-2.1-7
  unpack pgbouncer
  # Readable for the user of PostgreSQL, which runs it.
  chmod a+rx "$work"
  PGBOUNCER_PROGRAM=$work/pgbouncer/usr/sbin/pgbouncer node deploy/try-pgbouncer.ts
}

outage() {
  needs iproute2 postgresql liblua5.3-0 libopentracing-c-wrapper0
  unpack haproxy
  unpack prometheus
  HAPROXY_PROGRAM=$work/haproxy/usr/sbin/haproxy PROMETHEUS_PROGRAM=$work/prometheus/usr/bin/prometheus \
    isolated node deploy/try-outage.ts
}

rolling() {
  needs iproute2 postgresql liblua5.3-0 libopentracing-c-wrapper0
  unpack haproxy
  HAPROXY_PROGRAM=$work/haproxy/usr/sbin/haproxy isolated node deploy/try-rolling.ts
}

kubernetes() {
  .venv/bin/pip install --quiet --disable-pip-version-check --requirement deploy/requirements.txt
  # There is no schema for the resources of KEDA and of the Prometheus Operator.
  .venv/bin/kubernetes-validate --strict \
    deploy/kubernetes/{service-account,config,secret.example,migration,api,worker,network-policy,ingress}.yaml
  # Without Go or the module proxy there is no helm here: name one in HELM.
  helm=${HELM:-$work/bin/helm}
  [ -x "$helm" ] || GOBIN=$work/bin go install helm.sh/helm/v3/cmd/helm@v3.16.4
  "$helm" lint --strict deploy/kubernetes
  "$helm" template undertone deploy/kubernetes >"$work/chart.yaml"
  .venv/bin/python deploy/compare-chart.py "$work/chart.yaml" deploy/kubernetes
}

systemd() {
  needs systemd
  sed "s#/opt/undertone#$PWD#g" "deploy/systemd/undertone@.service" >"$work/undertone@.service"
  systemd-analyze verify "$work/undertone@all.service" 2>&1 | grep --fixed-strings "undertone@" && return 1
  return 0
}

alerts() {
  unpack prometheus
  promtool=$work/prometheus/usr/bin/promtool
  "$promtool" check rules deploy/prometheus/undertone.rules.yml
  "$promtool" check config --syntax-only deploy/prometheus/scrape.yml
  "$promtool" test rules deploy/prometheus/undertone.test.yml
  node deploy/dashboard-queries.ts >"$work/dashboard.rules.yml"
  "$promtool" check rules "$work/dashboard.rules.yml"
}

failed=()
for part in ${parts//,/ }; do
  echo
  echo "--- $part"
  # Not in a condition, where `set -e` has no effect.
  (set -e; "$part")
  [ $? -eq 0 ] || failed+=("$part")
done
echo
for part in "${failed[@]}"; do echo "MISSED: deploy: $part"; done
[ ${#failed[@]} -eq 0 ] && echo "All of $parts work."
