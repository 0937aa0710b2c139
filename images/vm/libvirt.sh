# shellcheck shell=bash disable=SC2154 # variables of the sourcing script
# libvirtd in a lane's namespaces, and a second one as another host. Sourced by bash after lane.sh. The machine's own libvirt stays
# untouched.
#
#   libvirt_check                    skips with a reason if the machine lacks a requirement
#   libvirt_host HOST [UUID]         prepares a host. The first is the lane's namespaces. Each further host has its own mounts,
#                                    thus its own /etc/libvirt, /run and /dev/shm; it shares network and processes
#   libvirt_bridge                   makes the bridge hawser0 with the address 10.77.0.1
#   libvirt_start | libvirt_stop [SIGNAL] | libvirt_restart [SIGNAL]   its daemon; domains keep running
#   v ARGUMENTS                      virsh
#   libvirt_hook HOST                installs hawserd's hook, before its daemon starts
#   hawserd_start LINE ... | hawserd_kill   hawserd, with lines of its configuration
#   on HOST COMMAND ...              any of these for another host (`on two v list`), or a program in its mounts
#   $work/HOST/etc                   is its /etc/libvirt (hooks in hooks/qemu.d); $work/HOST/log its /var/log/libvirt

declare -A libvirt_holder=() libvirt_pid=()
libvirt_first='' libvirt_here=''

libvirt_check() {
    need_root "tests of libvirt"
    need libvirtd:libvirt-daemon-system virsh:libvirt-clients qemu-system-x86_64:qemu-system-x86 unshare:util-linux nsenter:util-linux \
        ip:iproute2 curl jq
}

libvirt_bridge() {
    ip link add hawser0 type bridge
    ip addr add 10.77.0.1/24 dev hawser0
    ip link set hawser0 up
}

libvirt_host() {
    local host=$1 uuid=${2:-$(cat /proc/sys/kernel/random/uuid)} folder=$work/$1
    mkdir -p "$folder/etc" "$folder/lib" "$folder/log"
    # The probe of QEMU's capabilities runs once and is cached. It takes ten times as long as the rest of libvirtd's start.
    mkdir -p "$root/images/target/libvirt-cache"
    cp -r /etc/libvirt/. "$folder/etc"
    rm -rf "$folder/etc/hooks" "$folder/etc/qemu" "$folder/etc/storage"
    mkdir -p "$folder/etc/hooks/qemu.d" "$folder/etc/hooks/libxl.d"
    cat > "$folder/etc/qemu.conf" <<'TEXT'
user = "root"
group = "root"
security_driver = "none"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = [ ]
namespaces = [ ]
stdio_handler = "file"
TEXT
    cat > "$folder/etc/libvirtd.conf" <<TEXT
auth_unix_ro = "none"
auth_unix_rw = "none"
host_uuid = "$uuid"
log_outputs = "3:file:/var/log/libvirt/libvirtd.log"
TEXT
    if [ -z "$libvirt_first" ]; then
        libvirt_first=$host libvirt_here=$host
    else
        unshare --mount --uts --propagation private sleep infinity &
        libvirt_holder[$host]=$!
        # The host's namespaces exist when they differ from this process's.
        while [ /proc/self/ns/mnt -ef "/proc/${libvirt_holder[$host]}/ns/mnt" ]; do
            kill -0 "${libvirt_holder[$host]}" || die "no namespaces for the host $host"
        done
        on "$host" mount -t tmpfs -o mode=0755 none /run
        on "$host" mount -t tmpfs -o mode=1777 none /dev/shm
    fi
    on "$host" hostname "$host"
    on "$host" mkdir -p /var/cache/libvirt
    on "$host" mount --bind "$folder/etc" /etc/libvirt
    on "$host" mount --bind "$folder/lib" /var/lib/libvirt
    on "$host" mount --bind "$folder/log" /var/log/libvirt
    on "$host" mount --bind "$root/images/target/libvirt-cache" /var/cache/libvirt
}

# A function of this shell runs here with another `libvirt_here`; a program runs in the other host's mounts.
on() {
    local libvirt_here=$1 holder=${libvirt_holder[$1]:-}
    shift
    if [ "$(type -t "$1")" = function ] || [ -z "$holder" ]; then
        "$@"
    else
        nsenter --target "$holder" --mount --uts "$@"
    fi
}

# Sets `within` to the words before a program that runs in this host's mounts.
libvirt_within() {
    local holder=${libvirt_holder[$libvirt_here]:-}
    within=()
    [ -z "$holder" ] || within=(nsenter --target "$holder" --mount --uts)
}

libvirt_start() {
    local host=$libvirt_here within
    libvirt_within
    # The daemon itself must be the child, so that its id is known here.
    "${within[@]}" libvirtd > "$work/$host/libvirtd.out" 2>&1 < /dev/null &
    libvirt_pid[$host]=$!
    # Otherwise bash prints a message when a test kills the daemon.
    disown "$!"
    await_while "${libvirt_pid[$host]}" 600 libvirt_answers || { libvirt_show; die "libvirtd of $host did not start: $result"; }
}
libvirt_answers() { v version > /dev/null 2>&1; }

# Installs the hook on a host with a longer limit than 25 s: a busy emulating machine is slow. hawserd's hook.timeout must be a little
# shorter, $hook_limit.
hook_limit=590
libvirt_hook() {
    local folder=$work/$1/hooks/qemu.d
    mkdir -p "$folder"
    install -m 755 "$root/appliance/hooks/50-hawser" "$folder/50-hawser"
    printf '#!/bin/sh\nHAWSER_HOOK_TIMEOUT=%d exec "%s" "$@"\n' $((hook_limit + 10)) "$folder/50-hawser" > "$work/$1/etc/hooks/qemu.d/50-hawser"
    chmod 755 "$work/$1/etc/hooks/qemu.d/50-hawser"
}

# Starts hawserd on this host, with the lines $@ of its configuration and hooks' limit.
declare -A hawserd_pid=()
hawserd_start() {
    local host=$libvirt_here within
    libvirt_within
    "${within[@]}" mkdir -p /run/hawser
    printf '%s\n' 'region.owner = "root"' 'region.group = "root"' "hook.timeout = \"$hook_limit\"" "$@" > "$work/hawserd.$host.conf"
    "${within[@]}" "$hawserd" --config "$work/hawserd.$host.conf" >> "$work/hawserd.$host.log" 2>&1 < /dev/null &
    hawserd_pid[$host]=$!
    # Otherwise bash prints a message when a test kills hawserd.
    disown "$!"
    # The socket exists before hawserd answers.
    await_while "${hawserd_pid[$host]}" 600 hawserd_answers "${within[@]}"
}
hawserd_answers() {
    result=$("$@" curl -sSf --max-time 120 --unix-socket /run/hawser/hawserd.sock http://hawserd/v1/domains 2>&1) && result=''
}

# Kills hawserd, which is no child for `wait` after its disown.
hawserd_kill() {
    kill -KILL "${hawserd_pid[$libvirt_here]}"
    await 300 not kill -0 "${hawserd_pid[$libvirt_here]}" 2> /dev/null
}

libvirt_show() {
    tail -n 15 "$work/$libvirt_here/libvirtd.out" "$work/$libvirt_here/log/libvirtd.log" >&2 || true
}

# Stops the daemon with a signal (TERM by default) and waits for its end; domains keep running.
libvirt_stop() {
    local pid=${libvirt_pid[$libvirt_here]:-}
    [ -n "$pid" ] || return 0
    kill "-${1:-TERM}" "$pid" 2> /dev/null || true
    await 300 not kill -0 "$pid" 2> /dev/null || die "libvirtd of $libvirt_here did not end: $result"
    libvirt_pid[$libvirt_here]=
}

libvirt_restart() {
    libvirt_stop "$@"
    libvirt_start
}

# The limit ends a virsh that hangs.
v() {
    on "$libvirt_here" timeout -k 5 "${virsh_limit:-900}" virsh -q -c qemu:///system "$@"
}

# Defines the domain of the file $1.
define() { quietly v define --validate "$1"; }

# The serial ports in the XML of domain $1 for serial.sh: the console, then the control port.
serial_ports() {
    cat <<TEXT
    <serial type='file'><source path='$work/$1.console' append='on'/><target port='0'/></serial>
    <serial type='pipe'><source path='$work/$1.control'/><target port='1'/></serial>
TEXT
}

# Prints the element of a vGPU with the attributes $*.
metadata() { printf "<vgpu xmlns='urn:hawser:vgpu:1' %s/>" "$*"; }
# Prints the device for the region of the domain with UUID $1, of $2 MiB.
shmem() {
    printf "<shmem name='hawser-%s'><model type='ivshmem-plain'/><size unit='M'>%s</size><alias name='ua-hawser'/></shmem>" "$1" "$2"
}
# Prints a network card on the bridge, with the elements $1.
network() { printf "<interface type='bridge'>%s<source bridge='hawser0'/><model type='virtio'/><rom enabled='no'/></interface>" "${1:-}"; }

is_off() { result=$(v domstate "$1"); [[ $result = "shut off"* ]] && result=''; }

# Whether hawserd has written state $2 into domain $1, in an element that contains $3.
has_status() {
    result=$(v metadata "$1" urn:hawser:status:1 2>&1) && [[ $result = *state=[\"\']"$2"[\"\']* && $result = *"${3:-}"* ]] && result=''
}
