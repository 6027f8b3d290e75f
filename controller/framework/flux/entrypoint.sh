# Runs in the job's image: starts this pod's broker. The first pod's broker runs the command, which is this script's
# argument, in all pods; without one it waits for users. The variables above say which job this is.
set -euo pipefail

command=${1-}
root=${LOCKSTEP_FLUX_ROOT:-/mnt/flux}
software=${LOCKSTEP_FLUX_SOFTWARE:-/opt/software}
curve=${LOCKSTEP_FLUX_CURVE:-/curve}
retry=${LOCKSTEP_FLUX_RETRY_SECONDS:-15}
config=$root/config
flux=$root/view/bin/flux

# A container that starts again finds its software where it was.
if [[ ! -e $software/.complete ]]; then
  cp -RP "$root/software/." "$software/"
  touch "$software/.complete"
fi

# What Flux needs comes after what the image has, so that the job's python stays the job's. Fluxion, the scheduler, is a
# package of its own, which Flux finds by these variables only. The file is also for users who open a shell beside the job.
own_python_path=${PYTHONPATH-}
cat >"$root/flux-view.sh" <<END
export PATH="\$PATH:$root/view/bin"
for packages in "$root"/view/lib/python3*/site-packages; do
  if [ -d "\$packages" ]; then
    export PYTHONPATH="\${PYTHONPATH:+\$PYTHONPATH:}\$packages"
  fi
done
for fluxion in "$software"/*/flux-sched-* "$software"/*/*/flux-sched-*; do
  if [ -d "\$fluxion" ]; then
    export FLUX_MODULE_PATH="\$fluxion/lib/flux/modules:\$fluxion/lib/flux/modules/sched:\$fluxion/lib64/flux/modules"
    export FLUX_EXEC_PATH="\$fluxion/libexec/flux/cmd"
    export FLUX_RC_EXTRA="\$fluxion/etc/flux"
    export FLUX_MODPROBE_PATH_APPEND="\$fluxion/libexec/flux/modprobe"
  fi
done
export fluxsocket="local://$config/run/flux/local"
END
# shellcheck disable=SC1091 # it was written just now
. "$root/flux-view.sh"

# An earlier container of this pod may have left its state, which would go on with its job.
rm -rf "$config/run/flux" "$config/var/lib/flux"
mkdir -p "$config/run/flux" "$config/var/lib/flux"

# The certificate has to be the broker's own and nobody else's to read, which a mounted Secret is not.
(umask 077 && cp "$curve/curve.cert" "$config/etc/curve/curve.cert.new")
chmod 0600 "$config/etc/curve/curve.cert.new"
chown "$(id -u):$(id -g)" "$config/etc/curve/curve.cert.new"
mv -f "$config/etc/curve/curve.cert.new" "$config/etc/curve/curve.cert"

"$flux" R encode --hosts="$hosts" --cores="$cores" ${gpus:+--gpus="$gpus"} >"$config/etc/flux/system/R"

broker=(
  --broker-opts=--config-path="$config/etc/flux/config"
  --broker-opts=-Stbon.fanout=256
  --broker-opts=-Srundir="$config/run/flux"
  --broker-opts=-Sstatedir="$config/var/lib/flux"
  --broker-opts=-Slocal-uri="local://$config/run/flux/local"
)

# Not every image has hostname; bash knows the name too.
host=$(hostname 2>/dev/null || echo "$HOSTNAME")
if [[ $host == "$lead" ]]; then
  if [[ -z $command ]]; then
    echo "No command: connect with '. $root/flux-view.sh; flux proxy \$fluxsocket bash', end with 'flux shutdown' there"
    exec "$flux" start "${broker[@]}" --broker-opts=-Sbroker.rc2_none=1
  fi
  eval "set -- $command" # its words are quoted where they need it
  # The tasks get the python path that they would have without Flux: its packages are for its own python.
  python=--env-remove=PYTHONPATH
  if [[ -n $own_python_path ]]; then
    python=--env=PYTHONPATH=$own_python_path
  fi
  # shellcheck disable=SC2086 # several options
  exec "$flux" start "${broker[@]}" "$flux" run $submit "$python" "$@"
fi

# A broker that does not find the first one ends; one whose work is done ends well. Bash as process 1 must pass signals on.
child=
stop() {
  kill "$child" 2>/dev/null || true
  wait "$child" || true
  exit 143
}
trap stop TERM INT
while true; do
  "$flux" start "${broker[@]}" &
  child=$!
  wait "$child" && exit 0
  echo "The broker ended early, next try in $retry s" >&2
  sleep "$retry" &
  child=$!
  wait "$child"
done
