# shellcheck shell=bash disable=SC2034,SC2154 # variables of images/slurm-test
# The cluster of the lane `slurm`: the brokers, and machines with slurmdbd, slurmctld and slurmd. Sourced by images/slurm-test.

base=$root/images/target/slurm-base.tar
base_packages=slurmctld,slurmd,slurm-client,slurmdbd,mariadb-server,munge,iproute2,procps,libssl3

# Fetches Debian 12 with Slurm unless an earlier run has stored it. Needs the network, so it runs before lane_enter.
fetch_base() {
    [ "$(cat "$base.made-from" 2> /dev/null)" != "$base_packages" ] || return 0
    mkdir -p "$base.folder"
    say "$me: making the machines' Debian with Slurm (once)"
    # In memory, because dpkg waits for a disk after each file.
    # shellcheck disable=SC2016 # expanded by mmdebstrap's shell
    unshare --mount --propagation private sh -ec '
        mount -t tmpfs -o mode=755 tmpfs "$1.folder"
        TMPDIR=$1.folder exec mmdebstrap --format=tar --variant=minbase --include="$2" --dpkgopt=force-unsafe-io \
            --aptopt="Acquire::Retries \"5\"" --dpkgopt="path-exclude=/usr/share/man/*" --dpkgopt="path-exclude=/usr/share/doc/*" \
            --dpkgopt="path-exclude=/usr/share/locale/*" bookworm "$1.part"
        ' make "$base" "$base_packages" > "$base.log" 2>&1 ||
        { tail -n 5 "$base.log" >&2; die "mmdebstrap failed"; }
    rmdir "$base.folder"
    mv "$base.part" "$base"
    printf '%s\n' "$base_packages" > "$base.made-from"
}

# --- Brokers. Broker N has the address 10.78.0.N and the state folder $work/brokerN.

declare -A broker_pids=()   # empty while a broker is dead
declare -A broker_frozen=()

start_lane_broker() {
    local number=$1 state=$work/broker$1 member=()
    rm -f "$state/endpoints.json"
    [ ! -e "$state.log" ] || cat "$state.log" >> "$state-before.log" # a start begins the log again
    [ "$alone" = 1 ] || member=(-Dhawser.database.url=jdbc:postgresql://127.0.0.1:5432/postgres -Dhawser.broker.name=b"$number")
    start_broker "$state" -Dhawser.gpu.backend=software -Dhawser.gpu.software.devices=1 \
        -Dhawser.listen.host=10.78.0."$number" -Dhawser.http.host=10.78.0."$number" \
        -Dhawser.listen.port=7654 -Dhawser.http.port=7655 -Dhawser.worker.pool-size=1 "${member[@]}" "${broker_flags[@]}"
    broker_pids[$number]=$broker_pid
    (umask 077; printf 'Authorization: Bearer %s\n' "$(cat "$state/admin.token")" > "$work/admin$number.header")
    await_while "$broker_pid" 600 broker_is_ready
    broker_pid=''
}

kill_lane_broker() {
    kill -KILL "${broker_pids[$1]}"
    wait "${broker_pids[$1]}" 2> /dev/null || true
    broker_pids[$1]=''
}

start_brokers() {
    local number
    for ((number = 1; number <= brokers; number++)); do
        [ "$number" = 1 ] || ip addr add "10.78.0.$number/24" dev br0
        start_lane_broker "$number"
        make_user "$number"
    done
    await 60 all_gpus_are_known
    result="$brokers with a software GPU each"
}

# Makes the users of the controller and of the nodes: a node's root is an operator of its own name in the audit log.
make_user() {
    local name
    for name in slurm node1 node2; do
        (umask 077; [ -s "$work/$name.password" ] || od -An -N16 -tx1 /dev/urandom | tr -d ' \n' > "$work/$name.password")
        "$launcher" -Dhawser.state-dir="$work/broker$1" --set-password $name operator < "$work/$name.password" > "$work/output" 2>&1
    done
}

# Prints the answer of broker $1's REST interface to $2.
of_broker() { curl -sS --max-time 60 -f -H @"$work/admin$1.header" "http://10.78.0.$1:7655/api/v1/$2"; }

# Prints the list $1 of all brokers: of a pool, as the first one that answers has it.
of_brokers() {
    local number
    for ((number = 1; number <= brokers; number++)); do
        if [ -n "${broker_pids[$number]}" ] && [ -z "${broker_frozen[$number]:-}" ]; then
            of_broker "$number" "$1" || exit 1
            [ "$alone" = 1 ] || exit 0
        fi
    done | jq -s 'add // error("no broker answers")'
}

# Whether each broker of a pool knows the GPUs of all, and hears all.
all_gpus_are_known() {
    local number
    [ "$alone" = 0 ] || return 0
    for ((number = 1; number <= brokers; number++)); do
        result=$(of_broker "$number" gpus 2>&1) && jq -e --argjson count "$brokers" 'length == $count' <<< "$result" > /dev/null &&
            result=$(of_broker "$number" brokers) && jq -e --argjson count "$brokers" 'map(select(.state == "ready")) | length == $count' \
            <<< "$result" > /dev/null || return 1
    done
    result=''
}

# Whether broker $1 counts broker $2 as silent.
is_silent() {
    result=$(of_broker "$1" brokers) && jq -e --arg name "b$2" 'any(.name == $name and .state == "silent")' <<< "$result" > /dev/null && result=''
}
broker_filter() { [ "$alone" = 1 ] || printf '?broker=b%d' "$1"; }

# --- Machines.

make_machines() {
    mkdir -p "$work/machines"
    mount -t tmpfs -o mode=755,size=6G tmpfs "$work/machines"
    mkdir "$work/machines/base"
    tar -C "$work/machines/base" --exclude=./dev/* -xf "$base"
    local tree=$work/machines/base package
    for package in "${debs[@]}"; do
        cp "$package" "$tree/tmp/"
    done
    printf '#!/bin/sh\nexit 101\n' > "$tree/usr/sbin/policy-rc.d"
    chmod 755 "$tree/usr/sbin/policy-rc.d"
    [ ${#debs[@]} = 0 ] || chroot "$tree" sh -c 'PATH=/usr/sbin:/usr/bin:/sbin:/bin dpkg -i /tmp/*.deb'
    rm -f "$tree"/tmp/*.deb
    mkdir -p "$tree/etc/hawser" "$tree/opt/bin"
    [ ! -e "$bin/drv_vector_add" ] || cp -r "$bin/drv_vector_add" "$bin/hold" "$bin/ptx" "$tree/opt/bin/"
    printf '127.0.0.1 localhost\n10.78.0.101 ctl\n10.78.0.111 node1\n10.78.0.112 node2\n' > "$tree/etc/hosts"
    (umask 077; head -c 1024 /dev/urandom > "$tree/etc/munge/munge.key")
    chroot "$tree" chown munge:munge /etc/munge/munge.key
    chroot "$tree" useradd --create-home --uid 2001 ann
    chroot "$tree" useradd --create-home --uid 2002 bob
    cp "$lane_files"/slurm.conf "$lane_files"/gres.conf "$lane_files"/cgroup.conf "$tree/etc/slurm/"
    install -m 755 "$lane_files/prolog" "$tree/etc/slurm/prolog"
    # slurmdbd reads its file only if no other user can.
    install -m 600 "$lane_files/slurmdbd.conf" "$tree/etc/slurm/slurmdbd.conf"
    chroot "$tree" chown slurm:slurm /etc/slurm/slurmdbd.conf
    printf 'Licenses=hawser:0\n' > "$tree/etc/slurm/hawser.conf"
    chroot "$tree" chown slurm /etc/slurm/hawser.conf /etc/slurm
    write_settings "$tree/etc/hawser/slurm.conf"
}

# Each GPU has room for 6 vGPUs.
write_settings() {
    local number list='' urls='' addresses='' total
    total=$(of_broker 1 gpus | jq '.[0].totalBytes')
    for ((number = 1; number <= brokers; number++)); do
        list+=" http://10.78.0.$number:7655=10.78.0.$number:7654"
        urls+=",http://10.78.0.$number:7655" addresses+=",10.78.0.$number:7654"
    done
    [ "$alone" = 1 ] || list=" ${urls#,}=${addresses#,}"
    cat > "$1" <<TEXT
BROKERS="${list# }"
LOGIN=(--user "\$(cat /etc/hawser/slurm.user)" --password-file /etc/hawser/slurm.password)
MEMORY=$((total / 13 * 2 >> 20))M SHARE=25
TYPES="quarter:32M:25"
GRACE=$grace LIMIT=60 HOOK_LIMIT=200
TEXT
}

# Starts machine $1 at the address $2.
start_machine() {
    local name=$1 machines=$work/machines tree=$work/machines/$1 owner=root
    ! mountpoint -q "$tree" || umount -l "$tree" # of a machine that has crashed
    mkdir -p "$machines/$name.upper" "$machines/$name.work" "$tree"
    mount -t overlay -o "lowerdir=$machines/base,upperdir=$machines/$name.upper,workdir=$machines/$name.work" overlay "$tree"
    local user=$name
    [ "$name" != ctl ] || user=slurm owner=slurm
    printf '%s\n' "$user" > "$tree/etc/hawser/slurm.user"
    install -m 600 "$work/$user.password" "$tree/etc/hawser/slurm.password"
    chroot "$tree" chown "$owner" /etc/hawser/slurm.password
    [ "$name" != ctl ] || chroot "$tree" install -d -o slurm -m 700 /var/lib/hawser-slurm/controller
    machine_start "$name" "$2" "$tree" /bin/sh -c 'echo up > /run/up && exec sleep 1000000'
    await_while "${machine_pid[$name]}" 300 on "$name" test -e /run/up
    nsenter -t "${machine_pid[$name]}" -u hostname "$name"
    on "$name" hawser libraries on # needs /proc, which the packages' installation has not
    on "$name" install -d -o munge -m 755 /run/munge
    on "$name" runuser -u munge -- munged
}

# Runs $2... as root on machine $1.
on() {
    nsenter -t "${machine_pid[$1]}" -m -n -p -i -u -r --wdns=/ env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "${@:2}"
}

# Starts daemon $3... on machine $1 as user $2 in the background; its output is $work/$1.NAME.log.
daemon() { on "$1" setsid setpriv --reuid "$2" --regid "$2" --init-groups "${@:3}" >> "$work/$1.$3.log" 2>&1 < /dev/null & }

start_controller() {
    start_machine ctl 10.78.0.101
    on ctl install -d -o mysql -m 755 /run/mysqld
    on ctl install -d -o slurm -m 755 /var/lib/slurm/slurmctld /var/log/slurm
    daemon ctl mysql mariadbd --innodb-buffer-pool-size=64M
    await 120 on ctl mariadb -e 'select 1' > /dev/null
    on ctl mariadb -e "create database if not exists slurm_acct_db; create user slurm@localhost identified via unix_socket;
        grant all on slurm_acct_db.* to slurm@localhost"
    daemon ctl slurm slurmdbd -D
    await 120 on ctl sacctmgr --noheader show cluster > /dev/null
    on ctl sacctmgr --immediate add cluster lane > "$work/output"
    on ctl sacctmgr --immediate add account tests > "$work/output"
    on ctl sacctmgr --immediate add user ann,bob account=tests > "$work/output"
    daemon ctl slurm slurmctld -D
    await 120 on ctl scontrol ping > /dev/null
    result=$(on ctl slurmctld -V)
}

start_node() {
    start_machine "$1" "$2"
    on "$1" install -d -m 755 /var/lib/slurm/slurmd
    start_slurmd "$1"
}
start_slurmd() {
    daemon "$1" root slurmd -D
    await 120 node_is 'idle|mix|alloc|comp' "$1"
}
# Starts the broker of the package on node $1, for the GRES.
start_own_broker() {
    on "$1" install -d -o hawser -m 700 /var/lib/hawser/broker
    daemon "$1" hawser hawser-broker -Dhawser.state-dir=/var/lib/hawser/broker -Dhawser.gpu.backend=software \
        -Dhawser.worker.start-timeout=240s -Dhawser.worker.pool-size=1
    await 300 own_broker_is_ready "$1"
    (umask 077; printf 'Authorization: Bearer %s\n' "$(on "$1" cat /var/lib/hawser/broker/admin.token)" > "$work/own.header")
}
own_broker_is_ready() { result=$(own_broker "$1" gpus --fields uuid 2>&1) && [ -n "$result" ]; }
own_broker() { on "$1" timeout 60 hawserctl --state-dir /var/lib/hawser/broker "${@:2}"; }

node_is() { result=$(on ctl sinfo --noheader --nodes="$2" --format=%t) && [[ $result =~ ^($1)$ ]]; }
own_broker_is_clean() { result=$(own_broker node1 vgpus list --fields name 2>&1) && [ "$result" = default ]; }
