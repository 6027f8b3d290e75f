#!/usr/bin/env bash
# Builds the file system of real nodes' containers in a folder: a Debian with frameworks of PyPI. It needs root, and takes five minutes and eight
# gigabytes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$1
suite=bookworm
# DeepSpeed needs g++: it compiles how ranks of one node talk to each other.
packages="python3 python3-dev python3-venv g++ openmpi-bin openssh-server openssh-client procps iproute2"

rm -rf "$root" && mkdir -p "$root"
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
cd "$tools"
# Unpacked, not installed: the machine is unchanged.
apt-get download -qq debootstrap && dpkg -x debootstrap_*.deb .
echo "unpacking Debian $suite"
DEBOOTSTRAP_DIR=$PWD/usr/share/debootstrap usr/sbin/debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" > "$tools/log" ||
	{ tail "$tools/log"; exit 1; }

# The machine may trust more authorities than Debian does.
if [ -f /etc/ssl/certs/ca-certificates.crt ]; then cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"; fi
cp /etc/resolv.conf "$root/etc/"
mount -t proc proc "$root/proc"
trap 'umount "$root/proc"; rm -rf "$tools"' EXIT
inside() { DEBIAN_FRONTEND=noninteractive PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_FIND_LINKS='' chroot "$root" "$@"; }
echo "installing $packages"
inside apt-get update -qq
# shellcheck disable=SC2086
inside apt-get install -y -qq --no-install-recommends $packages > "$tools/log" 2>&1 || { tail "$tools/log"; exit 1; }
inside apt-get clean
echo "installing frameworks of PyPI (minutes)"
cp "$here/requirements.txt" "$root/opt/requirements.txt"
inside python3 -m venv /opt/venv
inside /opt/venv/bin/pip install -q --no-cache-dir -r /opt/requirements.txt
# Built against the torch that is installed, without its operators for GPUs.
DS_BUILD_OPS=0 inside /opt/venv/bin/pip install -q --no-cache-dir --no-build-isolation deepspeed==0.19.8

# As in Kubeflow's images for MPI: an account of its own, whose sshd and ssh use port 2222 and the keys of the job.
inside useradd --uid 1000 --create-home --shell /bin/bash mpiuser
mkdir -p "$root/home/mpiuser/.ssh" "$root/run/sshd" "$root/workspace"
cat > "$root/home/mpiuser/.sshd_config" <<'SSHD'
Port 2222
PidFile /home/mpiuser/sshd.pid
HostKey /home/mpiuser/.ssh/id_rsa
AuthorizedKeysFile /home/mpiuser/.ssh/authorized_keys
StrictModes no
UsePAM no
SetEnv PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin
SSHD
cat >> "$root/etc/ssh/ssh_config" <<'SSH'
Host *
    Port 2222
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
SSH
inside chown -R mpiuser: /home/mpiuser
chmod 1777 "$root/workspace"
# Kubelets put theirs in these places.
rm -f "$root/etc/resolv.conf"
touch "$root/etc/resolv.conf" "$root/etc/hostname" "$root/etc/hosts"
