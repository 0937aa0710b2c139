# shellcheck shell=bash disable=SC2034,SC2154 # variables of ../test
# The steps of the lane `packages` with the .deb packages of a host: common, broker, hypervisor, slurm. Sourced by ../test.

# Makes the command ARGUMENT... as user $1 and group $2 in root folder $new.
as_user() { within "$new" setpriv --reuid="$1" --regid="$2" --clear-groups "${@:3}"; }
# broker.conf of root folder $new must have mode, user and group $2.
expect_conf() { expect "$1" test "$(stat -c '%a %u %g' "$new/etc/hawser/broker.conf")" = "$2"; }

install_host() {
    local name
    picture "$new" > "$work/new.before"
    cp "${deb[common]}" "${deb[broker]}" "${deb[hypervisor]}" "${deb[slurm]}" "$new/tmp/"
    # Without libvirt and curl, the only dependencies that a minimal Debian lacks.
    quietly within "$new" dpkg --force-depends -i "/tmp/hawser-common_${version}_amd64.deb" "/tmp/hawser-broker_${version}_amd64.deb" \
        "/tmp/hawser-hypervisor_${version}_amd64.deb" "/tmp/hawser-slurm_${version}_amd64.deb"
    quietly within "$new" getent passwd hawser
    for name in hawser-broker hawserctl hawserd; do
        quietly within "$new" $name --version
    done
    quietly within "$new" hawser-fabric --help
    quietly within "$new" hawser-slurm --help
    expect "Slurm's hooks are executable" test -x "$new/usr/lib/hawser/slurm/task-prolog"
    expect "hawser-fabric measures nothing without perftest" not quietly within "$new" hawser-fabric measure host
    expect "it names the missing package" grep -q 'install the package perftest' "$work/output"
    expect "the broker's package suggests perftest" test "$(dpkg-deb -f "${deb[broker]}" Suggests)" = perftest
    expect "hawserd has its archive of classes" test -s "$new/usr/lib/hawser/lib/hypervisor/hawserd.jsa"
    expect "hawserd starts with its archive of classes" quietly within "$new" env HAWSERD_JAVA_OPTS=-Xshare:on hawserd --version
    expect "the hooks are executable" test -x "$new/etc/libvirt/hooks/qemu.d/50-hawser"
    hawser_uid=$(within "$new" id -u hawser) hawser_gid=$(within "$new" id -g hawser)
    expect_conf "broker.conf is root's and the broker's alone" "640 0 $hawser_gid"
    expect "the broker can read its settings" quietly as_user hawser hawser cat /etc/hawser/broker.conf
    expect "no other user can read broker.conf" not quietly as_user nobody nogroup cat /etc/hawser/broker.conf
    unit=$new/lib/systemd/system/hawser-broker.service
}

# Lists the system calls of these names and groups, as systemd defines them.
expand_calls() {
    local name
    for name in "$@"; do
        case $name in
            @*) systemd-analyze syscall-filter "$name" | sed -n 's/^    \([^# ][^ ]*\)$/\1/p' > "$work/group"
                # shellcheck disable=SC2046 # one word per call
                expand_calls $(cat "$work/group") ;;
            *) printf '%s\n' "$name" ;;
        esac
    done
}

# Makes $work/deny, a program that runs another one under a filter of the system calls that the unit denies, as systemd would.
deny=()
make_deny() {
    local name
    # shellcheck disable=SC2046 # one word per call
    expand_calls $(sed -n 's/^SystemCallFilter=~//p' "$unit") | sort -u > "$work/denied.all"
    # shellcheck disable=SC2046
    expand_calls $(sed -n 's/^SystemCallFilter=\([^~]\)/\1/p' "$unit") | sort -u > "$work/denied.not"
    comm -23 "$work/denied.all" "$work/denied.not" > "$work/denied"
    for name in mount umount2 pivot_root move_mount open_tree fsopen mount_setattr iopl ioperm; do
        expect "the unit denies $name" grep -qx "$name" "$work/denied"
    done
    expect "the unit allows chroot, which workers need to leave the file system" not grep -qx chroot "$work/denied"
    sed 's/.*/#ifdef SYS_&\n    SYS_&,\n#endif/' "$work/denied" > "$work/denied.h"
    quietly gcc -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -I"$work" -o "$work/deny" "$parts/deny.c"
    deny=("$work/deny")
    # In another shell, because a shell reports the signal.
    expect "a denied call fails" not sh -c '"$0" umount /nonexistent; exit $?' "$work/deny" 2> /dev/null
    result="$(wc -l < "$work/denied") calls"
}

# Prints the value of the unit's setting $1.
said() { sed -n "s/^$1=//p" "$unit"; }

# Starts the broker as the unit does, without the service manager: user, capabilities, system calls, environment.
start_unit_broker() {
    local capabilities environment
    capabilities=$(said AmbientCapabilities | sed 's/CAP_/+/g; s/ /,/g' | tr '[:upper:]' '[:lower:]')
    within "$new" install -d -o hawser -g hawser -m 0700 /var/lib/hawser/broker
    {
        echo "HAWSER_LISTEN_PORT=0"
        echo "HAWSER_HTTP_PORT=0"
        echo "HAWSER_WORKER_START_TIMEOUT=240s"
    } >> "$new/etc/hawser/broker.conf"
    environment=$(grep -v '^#' "$new/etc/hawser/broker.conf" | grep .)
    # shellcheck disable=SC2086 # one word per setting
    "${deny[@]}" setpriv --no-new-privs --bounding-set="-all,$capabilities,+setpcap" -- \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HAWSER_STATE_DIR="$(said Environment | sed 's/.*=//')" $environment \
        chroot "$new" setpriv --reuid="$hawser_uid" --regid="$hawser_gid" --clear-groups --inh-caps="-all,$capabilities" \
        --ambient-caps="-all,$capabilities" --bounding-set="-all,$capabilities" "$(said ExecStart)" > "$work/broker.log" 2>&1 < /dev/null &
    broker_pid=$!
    state=$new/var/lib/hawser/broker
    await_while "$broker_pid" 300 test -s "$state/endpoints.json"
    guest=$(jq -r .guest "$state/endpoints.json")
    expect "the broker runs as hawser" test "$(stat -c %u "/proc/$broker_pid")" = "$hawser_uid"
    result="at $guest"
}

upgrade_host() {
    local name
    stop_broker
    quietly no_defects "$work/broker.log"
    cp "$new/etc/hawser/broker.conf" "$work/edited"
    # The mode of earlier versions.
    chmod 0644 "$new/etc/hawser/broker.conf"
    chown 0:0 "$new/etc/hawser/broker.conf"
    for name in common broker hypervisor slurm; do
        newer "${deb[$name]}" 9.9
        mv "$work/newer/hawser-${name}"_9.9_*.deb "$new/tmp/"
    done
    quietly within "$new" sh -c 'dpkg --force-depends -i /tmp/hawser-*_9.9_*.deb'
    expect "an upgrade keeps broker.conf" cmp -s "$work/edited" "$new/etc/hawser/broker.conf"
    expect_conf "an upgrade takes broker.conf from other users" "640 0 $hawser_gid"
    chmod 0600 "$new/etc/hawser/broker.conf"
    chown 0:0 "$new/etc/hawser/broker.conf"
    quietly within "$new" dpkg -i --force-depends /tmp/hawser-broker_9.9_amd64.deb
    expect_conf "an upgrade leaves a mode of the administrator's that gives others no right" "600 0 0"
    expect "an upgrade keeps the database" test -s "$state/broker.mv.db"
    quietly within "$new" dpkg -r hawser-slurm hawser-hypervisor hawser-broker hawser-common
    expect "removing keeps the database" test -s "$state/broker.mv.db"
    quietly within "$new" dpkg -P hawser-slurm hawser-hypervisor hawser-broker hawser-common
    nothing_but_the_user "the host packages"
}

# Root folder $new must be as before $1, except for the user. It stays, by Debian's rule: while its files may exist, no other user may get
# its number.
nothing_but_the_user() {
    rm -f "$new"/tmp/*.deb
    rm -rf "$new"/tmp/hsperfdata_*
    picture "$new" > "$work/new.after"
    sed -i -E '/^\.\/etc\/(passwd|group|shadow|gshadow|subuid|subgid)-? /d' "$work/new.before" "$work/new.after"
    compare_pictures "$work/new.before" "$work/new.after" "$1"
}
