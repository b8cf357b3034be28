#!/usr/bin/env bash
# Runs the image in $root like a container: with its user, its environment and a read-only root file system.
set -euo pipefail
# shellcheck source=/dev/null
source "$config"
mount --bind "$root" "$root"
mount --options remount,bind,ro "$root"
mount --types proc proc "$root/proc"
mount --types tmpfs --options mode=1777 tmpfs "$root/tmp"
mount --types tmpfs --options "mode=700,uid=${user%:*},gid=${user#*:}" tmpfs "$root/data"
mount --bind /dev "$root/dev"
key=a-key-of-no-value
log=${config%/*}/image.log
inside=(chroot "--userspec=$user" "$root" env --ignore-environment "--chdir=$folder" "${environment[@]}" "SERVICE_API_KEY=$key")

touch "$root/app/x" 2>/dev/null && { echo 'The root file system is writable.'; exit 1; }
"${inside[@]}" "${start[@]}" >"$log" &
server=$!
for ((tries = 0; ; tries++)); do
  "${inside[@]}" "${health[@]}" && break
  [ "$tries" -lt 60 ] && kill -0 "$server" || { cat "$log"; exit 1; }
  sleep 0.5
done
voice=examples/voices/happy-1064.wav
ffmpeg -loglevel error -y -i "$voice" -c:a libopus "$root/tmp/voice.webm"
for file in "$voice" "$root/tmp/voice.webm"; do
  answer=$(curl --silent --show-error --fail --header "x-api-key: $key" --form "file=@$file" http://127.0.0.1:8080/v1/discrete/emotion)
  echo "${file##*/}: $answer"
done
kill -TERM "$server"
wait "$server"
echo "Ran as user $user with a read-only root, answered WAV and WebM, was healthy, and shut down cleanly."
