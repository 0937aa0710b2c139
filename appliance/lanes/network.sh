# shellcheck shell=bash disable=SC2034,SC2154 # variables of the sourcing script
# Machines in namespaces on one bridge, and certificates. Sourced by bash after lane.sh, in private namespaces (lane_enter).

# Makes the bridge br0 with the address $1.
make_bridge() {
    ip link add br0 type bridge
    ip addr add "$1/24" dev br0
    ip link set br0 up
}

# A machine's first process sets up a file system as in a container, in folder $1, and then becomes $2...
# shellcheck disable=SC2016 # expanded by the machine's shell
machine_init='
    cd "$1"
    shift
    mkdir -p proc sys run dev old
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    mount -t tmpfs -o mode=755 tmpfs run
    mount -t tmpfs -o mode=755 tmpfs dev
    for node in null zero full random urandom tty; do : > dev/$node; mount --bind /dev/$node dev/$node; done
    mkdir dev/shm dev/pts
    mount -t tmpfs -o mode=1777 tmpfs dev/shm
    mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
    ln -s pts/ptmx dev/ptmx
    pivot_root . old
    cd /
    umount -l /old
    mkdir -p /run/sshd
    exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
'
declare -A machine_pid=()

# Starts machine $1 at the address $2 in the mounted folder $3, with the first process $4...; its output is $work/$1.log.
machine_start() {
    local name=$1 address=$2 tree=$3 parent link=veth-${1:0:8}
    shift 3
    unshare --mount --net --ipc --uts --pid --cgroup --fork --kill-child --propagation private \
        sh -e -c "$machine_init" machine "$tree" "$@" > "$work/$name.log" 2>&1 < /dev/null &
    parent=$!
    await_while "$parent" 300 pgrep -P "$parent" > /dev/null
    machine_pid[$name]=$(pgrep -P "$parent")
    ip link add "$link" type veth peer name eth0 netns "${machine_pid[$name]}"
    ip link set "$link" master br0 up
    in_net "$name" ip link set lo up
    in_net "$name" ip addr add "$address/24" dev eth0
    in_net "$name" ip link set eth0 up
}

# Runs a command of this machine in the network of machine $1.
in_net() { nsenter -t "${machine_pid[$1]}" -n "${@:2}"; }

# Makes the key $1.key and the certificate $1.pem of an authority, in the working directory.
make_authority() {
    openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$1.key"
    openssl req -x509 -new -key "$1.key" -subj "/CN=$1 of $me" -days 30 -out "$1.pem"
}

# Makes $2.key and $2.pem for the names $3, valid for $4 days, signed by the authority $1, in the working directory.
make_certificate() {
    openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$2.key"
    echo "subjectAltName=$3" > "$2.ext"
    openssl req -new -key "$2.key" -subj "/CN=$2" |
        openssl x509 -req -CA "$1.pem" -CAkey "$1.key" -CAcreateserial -days "$4" -extfile "$2.ext" -out "$2.pem"
}
