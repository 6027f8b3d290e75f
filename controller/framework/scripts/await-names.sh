# Waits until names resolve, then runs a command: await-names SECONDS HOSTFILE|NAME COMMAND...
limit=$1 hosts=$2
shift 2
trap 'exit 143' TERM INT
own=
while read -r address names; do
  for name in $names; do [ "$name" != "$HOSTNAME" ] || own="$own $address"; done
done < /etc/hosts

has() { command -v "$1" > /dev/null 2>&1; }
# The pod before this one had the same name and another address, which DNS may still say.
getent_says() {
  answer=`getent hosts "$1"` || return
  [ "${1%%.*}" = "$HOSTNAME" ] && [ -n "$own" ] || return 0
  for address in $own; do
    case "
$answer" in *"
$address"[!0-9a-f.:]*) return 0 ;; esac
  done
  return 1
}
ssh_says() {
  answer=`ssh -o BatchMode=yes -o ConnectTimeout=1 -o ConnectionAttempts=1 "$1" true 2>&1` && return
  case $answer in *[Rr]esolve*) return 1 ;; esac
}
if has getent; then resolves() { getent_says "$1"; }
elif has ssh; then resolves() { ssh_says "$1"; }
elif has nslookup; then resolves() { nslookup "$1" > /dev/null 2>&1; }
else
  echo "lockstep: no getent, ssh or nslookup to wait with; starting without" >&2
  exec "$@"
fi

# A pod's name is in DNS about a second after its start. One that is asked for before may stay unknown for as long as DNS caches that: 30 s with CoreDNS.
sleep "${LOCKSTEP_SETTLE:-2}"
end=$((`date +%s` + limit))
while read -r name rest; do
  until resolves "$name" < /dev/null; do
    if [ "`date +%s`" -ge "$end" ]; then
      echo "lockstep: $name does not resolve after $limit s; starting all the same" >&2
      break 2
    fi
    sleep 0.1
  done
done << END
`if [ -f "$hosts" ]; then cat "$hosts"; else echo "$hosts"; fi`
END
trap - TERM INT
exec "$@"
