# Runs in the image that has Flux, before the job's own image: copies Flux to where that image finds it, and writes the
# configuration of the brokers. The variables above say which job this is.
set -euo pipefail

root=${LOCKSTEP_FLUX_ROOT:-/mnt/flux}
view=${LOCKSTEP_FLUX_VIEW:-/opt/view}
software=${LOCKSTEP_FLUX_SOFTWARE:-/opt/software}
config=$root/config

mkdir -p "$root/view" "$root/software" "$config/etc/flux/system" "$config/etc/flux/config" "$config/etc/curve" \
  "$config/run/flux" "$config/var/lib/flux"

# The view is a tree of links into the software, so both are needed, and the links have to stay links.
cp -RP "$view/." "$root/view/"
cp -RP "$software/." "$root/software/"

printf '%s\n' "$hosts" >"$config/etc/hostlist"

cat >"$config/etc/flux/config/broker.toml" <<END
# The brokers of TrainJob $namespace/$job.
[access]
allow-guest-user = true
allow-root-owner = true

[resource]
path = "$config/etc/flux/system/R"

[bootstrap]
curve_cert = "$config/etc/curve/curve.cert"
default_port = 8050
default_bind = "tcp://$device:%p"
default_connect = "tcp://%h.$subdomain.$namespace.svc.cluster.local:%p"
hosts = [ { host = "$hosts" } ]

[archive]
dbpath = "$config/var/lib/flux/job-archive.sqlite"
period = "1m"
busytimeout = "50s"

[sched-fluxion-qmanager]
queue-policy = "$policy"
END

# The job's image may run as another user.
chmod -R a+rwX "$config"
echo "Flux is ready for $hosts"
