# Runs a command once for each worker of this node: per-gpu WORKERS GPUS COMMAND...
# GPUS is how many the container was given: a number, or "count" where claims brought them.
workers=${WORKERS_PER_NODE:-$1} gpus=$2
shift 2
case $workers in
'' | 0 | *[!0-9]*) echo "lockstep: WORKERS_PER_NODE is $workers, want a number from 1" >&2; exit 2 ;;
1) exec "$@" ;;
esac
node=${DMLC_TASK_ID:?is set by the TrainJob controller}
here=`pwd`
visible=${CUDA_VISIBLE_DEVICES-unset}
pids= status= deadline=
if [ "$gpus" = count ]; then
  gpus=0
  for device in /dev/nvidia[0-9]*; do [ -e "$device" ] && gpus=$((gpus + 1)); done
fi

# A container's first process signals all others of its namespace, because a worker may be a shell with a child of its own.
# The shell's own id is not asked of the shell: Kubernetes halves two dollar signs in a row.
read -r self rest < /proc/self/stat || self=0
send() {
  if [ "$self" = 1 ]; then kill -"$1" -1; else kill -"$1" $pids; fi 2> /dev/null
}
# Bash takes a bare return in a trap for the status of before it.
remain() {
  others=$pids
  [ "$self" != 1 ] || others=-1
  for pid in $others; do kill -0 "$pid" 2> /dev/null && return 0; done
  return 1
}
nap() { sleep 0.2 & wait "$!"; }
now() { date +%s; }
# Ends all workers: a container's first process takes what is left along when it exits.
finish() {
  trap '' TERM INT
  send TERM
  deadline=$((`now` + $2))
  while remain && [ "`now`" -lt "$deadline" ]; do nap; done
  send KILL
  exit "$1"
}
trap 'finish 143 86400' TERM INT

# Prints the device of a worker: its item of the list that the container has, or its number. Nothing is printed where the
# container's own list is too short, or empty, which hides all devices.
device_of() {
  [ "$gpus" -gt 0 ] || return 0
  if [ "$visible" = unset ]; then
    echo $(($1 % gpus))
    return
  fi
  skip=$1 list=$visible,
  while [ "$skip" -gt 0 ]; do list=${list#*,} skip=$((skip - 1)); done
  echo "${list%%,*}"
}

link() { # DIRECTORY FILES...
  target=$1
  shift
  [ -e "$1" ] || [ -L "$1" ] || return 0
  ln -s "$@" "$target" 2> /dev/null && return
  for file; do [ -L "$target/${file##*/}" ] || ln -s "$file" "$target"; done
}
# Prints a fresh directory with everything in the current one, for a worker after the first: what one worker writes before it
# runs it, another must not truncate meanwhile. Programs are copied, for one of an earlier run would be written through a link.
# Where no directory can be made, no worker can write either.
directory() {
  fresh=`mktemp -d "${TMPDIR:-/tmp}/worker.XXXXXX" 2> /dev/null || mktemp -d "$here/.worker.XXXXXX" 2> /dev/null` || {
    echo "$here"
    return
  }
  link "$fresh" "$here"/*
  link "$fresh" "$here"/.[!.]*
  link "$fresh" "$here"/..?*
  for file in "$here"/*.py; do
    [ ! -f "$file" ] || cp "$file" "$fresh/.copy" 2> /dev/null && mv -f "$fresh/.copy" "$fresh/${file##*/}"
  done 2> /dev/null
  echo "$fresh"
}
# Two installations into one place destroy each other. What the first worker's already has stays in sight of the others.
private_packages() {
  for site in "${PYTHONUSERBASE:-$HOME/.local}"/lib/python*/site-packages; do
    [ ! -d "$site" ] || export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$site"
  done
  export PYTHONUSERBASE="$1/.packages"
}

# All directories are made before any worker starts, or they would have links to what the first one writes.
worker=$((workers - 1))
while [ "$worker" -gt 0 ]; do
  directories="`directory`
$directories"
  worker=$((worker - 1))
done
while [ "$worker" -lt "$workers" ]; do
  (
    trap - TERM INT
    export DMLC_TASK_ID=$((node * workers + worker))
    device=`device_of "$worker"`
    [ -z "$device" ] || export CUDA_VISIBLE_DEVICES="$device"
    if [ "$worker" -gt 0 ]; then
      cd "${directories%%
*}" || exit 1
      case $* in *"pip install"*) private_packages "`pwd`" ;; esac
    fi
    exec "$@"
  ) &
  pids="$pids $!"
  [ "$worker" -eq 0 ] || directories=${directories#*
}
  worker=$((worker + 1))
done

# A worker that fails leaves the others waiting for it for ever.
while [ -n "$pids" ]; do
  left=
  for pid in $pids; do
    if kill -0 "$pid" 2> /dev/null; then
      left="$left $pid"
    else
      wait "$pid" || status=$?
      [ -z "$status" ] || break
    fi
  done
  [ -z "$status" ] || finish "$status" 25
  pids=$left
  [ -z "$pids" ] || nap
done
