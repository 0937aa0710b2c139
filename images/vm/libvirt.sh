# shellcheck shell=bash disable=SC2154 # variables of the sourcing script
# Shell functions for tests with libvirt: a libvirtd in private namespaces, a second one as another host, and guests that take commands
# from a serial port. Sourced by bash, after vm.sh if guests boot; the sourcing script sets `root` and `work`,
# and defines `say`, `die` and `skip`. The machine's own libvirt stays untouched, and all processes end with the script.
#
#   libvirt_check                    skips with a reason if the machine lacks a requirement
#   libvirt_private COMMAND ...      runs COMMAND as the first process of private namespaces (mounts, network, processes, host name)
#   libvirt_host HOST [UUID]         prepares a host. The first is the namespace itself. Each further host has its own mounts,
#                                    thus its own /etc/libvirt, /run and /dev/shm; it shares network and processes
#   libvirt_start | libvirt_stop [SIGNAL] | libvirt_restart [SIGNAL]   its daemon; domains keep running
#   v ARGUMENTS                      virsh
#   libvirt_hook HOST                installs hawserd's hook, before its daemon starts
#   on HOST COMMAND ...              any of these for another host (`on two v list`), or a program in its mounts
#   $work/HOST/etc                   is its /etc/libvirt (hooks in hooks/qemu.d); $work/HOST/log its /var/log/libvirt

declare -A libvirt_holder=() libvirt_pid=()
libvirt_first='' libvirt_here=''

libvirt_check() {
    local program
    [ "$(id -u)" = 0 ] || skip "tests of libvirt need root"
    for program in libvirtd virsh:libvirt-clients unshare:util-linux nsenter:util-linux ip:iproute2; do
        command -v "${program%:*}" > /dev/null ||
            skip "${program%:*} is missing: install $([ "$program" = libvirtd ] && echo libvirt-daemon-system || echo "${program#*:}")"
    done
    unshare --mount --net --uts --pid --fork --mount-proc --propagation private mount -t tmpfs none /run 2> /dev/null ||
        skip "private namespaces are not permitted here"
}

# All processes in the namespaces end with their first process, which ends with the caller.
libvirt_private() {
    unshare --mount --net --uts --pid --fork --kill-child --mount-proc --propagation private "$@"
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
        ip link set lo up
    else
        unshare --mount --uts --propagation private sleep infinity &
        libvirt_holder[$host]=$!
        # The host's namespaces exist when they differ from this process's.
        while [ /proc/self/ns/mnt -ef "/proc/${libvirt_holder[$host]}/ns/mnt" ]; do
            kill -0 "${libvirt_holder[$host]}" || die "no namespaces for the host $host"
        done
    fi
    on "$host" hostname "$host"
    on "$host" mount -t tmpfs -o mode=0755 none /run
    on "$host" mount -t tmpfs -o mode=1777 none /dev/shm
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

libvirt_start() {
    local host=$libvirt_here deadline=$((SECONDS + 600)) holder=${libvirt_holder[$libvirt_here]:-}
    # The daemon itself must be the child, so that its id is known here.
    if [ -z "$holder" ]; then
        libvirtd > "$work/$host/libvirtd.out" 2>&1 < /dev/null &
    else
        nsenter --target "$holder" --mount --uts libvirtd > "$work/$host/libvirtd.out" 2>&1 < /dev/null &
    fi
    libvirt_pid[$host]=$!
    # Otherwise bash prints a message when a test kills the daemon.
    disown "$!"
    until v version > /dev/null 2>&1; do
        kill -0 "${libvirt_pid[$host]}" 2> /dev/null || { libvirt_show; die "libvirtd of $host did not start"; }
        [ $SECONDS -lt $deadline ] || { libvirt_show; die "libvirtd of $host did not answer within 600 s"; }
        sleep 0.1 # before the daemon's start virsh only fails
    done
}

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

libvirt_show() {
    tail -n 15 "$work/$libvirt_here/libvirtd.out" "$work/$libvirt_here/log/libvirtd.log" >&2 || true
}

# Stops the daemon with a signal (TERM by default) and waits for its end; domains keep running.
libvirt_stop() {
    local pid=${libvirt_pid[$libvirt_here]:-} deadline=$((SECONDS + 300))
    [ -n "$pid" ] || return 0
    kill "-${1:-TERM}" "$pid" 2> /dev/null || true
    while kill -0 "$pid" 2> /dev/null; do
        [ $SECONDS -lt $deadline ] || die "libvirtd of $libvirt_here did not end within 300 s"
        sleep 0.05 # `wait` has no limit
    done
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

# --- Guests of libvirt. A domain's second serial port is `<serial type='pipe'><source path='$work/guest.NAME'/>`.

declare -A guest_in=() guest_out=() guest_rest=()
guest_count=0

# Makes the pipes of guest $1 and keeps both ends open. So neither side waits for the other, and the pipes outlive reboots and QEMU.
guest_open() {
    local in out
    [ -z "${guest_in[$1]:-}" ] || return 0
    mkfifo "$work/guest.$1.in" "$work/guest.$1.out"
    exec {in}<> "$work/guest.$1.in" {out}<> "$work/guest.$1.out"
    guest_in[$1]=$in guest_out[$1]=$out guest_rest[$1]=
}

# The serial ports of a domain's XML for guest $1: the console in a file, the control port, in this order.
guest_ports() {
    cat <<TEXT
    <serial type='file'><source path='$work/guest.$1.console' append='on'/><target port='0'/></serial>
    <serial type='pipe'><source path='$work/guest.$1'/><target port='1'/></serial>
TEXT
}

guest_show() {
    say "the console of $1:"
    tail -n 15 "$work/guest.$1.console" >&2 || true
}

# Reads a line of guest $1 into `line`, within $2 seconds.
guest_line() {
    local name=$1 end=$((SECONDS + $2)) part
    while true; do
        if IFS= read -r -t 1 -u "${guest_out[$name]}" part; then
            line=${guest_rest[$name]}${part%$'\r'} guest_rest[$name]=
            return 0
        fi
        guest_rest[$name]+=$part
        [ $SECONDS -lt "$end" ] || return 1
    done
}

# Waits until guest $1 has booted, within $2 seconds. Ignores earlier output.
guest_await_boot() {
    local line='' end=$((SECONDS + ${2:-600}))
    until [ "$line" = HELLO ]; do
        guest_line "$1" $((end - SECONDS)) || { guest_show "$1"; die "the guest $1 did not boot within ${2:-600} s"; }
    done
}

# Runs a command in guest $1, within $2 seconds; its output goes to the file $work/answer. Returns its status.
guest_run() {
    local name=$1 limit=$2 end=$((SECONDS + $2)) line tag
    shift 2
    guest_count=$((guest_count + 1))
    tag=answer-$$-$guest_count
    printf '%s %s\n' "$tag" "$*" >&"${guest_in[$name]}"
    : > "$work/answer"
    while true; do
        guest_line "$name" $((end - SECONDS)) ||
            { cat "$work/answer" >&2; guest_show "$name"; die "not done within $limit s in the guest $name: $*"; }
        case $line in
            "$tag "*) return "${line#"$tag "}" ;;
            HELLO) guest_show "$name"; die "the guest $name rebooted during: $*" ;;
            ?*) printf '%s\n' "$line" >> "$work/answer" ;;
        esac
    done
}

# Sends a command that ends guest $1, so that there is no answer.
guest_send() {
    printf 'nobody %s\n' "${*:2}" >&"${guest_in[$1]}"
}

# Discards the input and output of guest $1, before a stopped domain starts again.
guest_forget() {
    local rest
    while IFS= read -r -t 0.01 -u "${guest_out[$1]}" rest; do :; done
    while IFS= read -r -t 0.01 -u "${guest_in[$1]}" rest; do :; done
    guest_rest[$1]=
}
