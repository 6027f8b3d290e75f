#!/usr/bin/env bash
# Packs the part of the file system that images have, with programs in its working directory: layer.sh ROOT LAYER PROGRAM...
set -euo pipefail
root=$1 layer=$2
shift 2
install -m 0644 -t "$root/workspace" "$@"
excluded=()
for folder in usr opt proc sys dev tmp var/cache var/lib/apt var/lib/dpkg debootstrap; do excluded+=("--exclude=./$folder/*"); done
tar --directory "$root" "${excluded[@]}" -cf "$layer" .
