# shellcheck shell=sh disable=SC2154,SC3043 # `result` of the lanes' inside.sh; busybox sh has `local`
# Commands inside the machines of the lane `rdma`. Follows appliance/lanes/inside.sh in their /inside.sh.

# Gives eth0 the address $1 and makes the SoftRoCE device rxe0 on it.
join_fabric() {
    ip link set eth0 up && ip addr add "$1/24" dev eth0 && rdma link add rxe0 type rxe netdev eth0 || return 1
    # As the udev rules of Debian's rdma-core do: verbs check rights by protection domain, not by the device file.
    chmod 666 /dev/infiniband/uverbs*
    await 120 port_is_active
    rdma link show rxe0/1
}
port_is_active() { rdma link show rxe0/1 | grep -q 'state ACTIVE'; }

# Whether rxe0 has no queue pair except the kernel's own (GSI).
no_queue_pairs() { ! rdma resource show qp link rxe0 | grep -v 'type GSI'; }

# Prints the clock ticks, 100 a second, that each thread of process $1 has used: a line is ID, NAME, TICKS.
threads() {
    local stat
    for stat in /proc/"$1"/task/*/stat; do
        # A name in parentheses may contain spaces. Fields 14 and 15 of the line are utime and stime.
        sed 's/(\(.*\)) /\n\1\n/' "$stat" 2> /dev/null |
            awk 'NR == 1 { id = $1 } NR == 2 { gsub(" ", "_"); name = $0 } NR == 3 { print id, name, $12 + $13 }'
    done
}
# Prints the clock ticks that the process $2 uses in $1 s: the three busiest threads, and in the last line the sum.
ticks_in() {
    kill -0 "$2" || return 1
    threads "$2" > /tmp/threads
    sleep "$1"
    threads "$2" | awk 'NR == FNR { before[$1] = $3; next } $3 > before[$1] { print $2, $3 - before[$1] }' /tmp/threads - > /tmp/ticks
    sort -rn -k 2 /tmp/ticks | head -n 3
    awk '{ sum += $2 } END { print sum + 0 }' /tmp/ticks
}

# Runs $2 processes of the program $1 at once; all must pass.
at_once() {
    local number=0 pids='' process failed=0
    while [ $number -lt "$2" ]; do
        number=$((number + 1))
        "$1" > "/tmp/at-once.$number" 2>&1 &
        pids="$pids $!"
    done
    for process in $pids; do
        wait "$process" || failed=$((failed + 1))
    done
    [ $failed = 0 ] || { echo "$failed of $2 failed"; cat /tmp/at-once.*; return 1; }
    grep -h -c "^PASS $1: " /tmp/at-once.* | awk '{ sum += $1 } END { print sum " passed"; exit sum != '"$2"' }'
}

# Starts the program $1 with the further arguments and kills it $2 seconds later, during its copies. It must not have ended before.
kill_during() {
    local program="$1" delay="$2" process
    shift 2
    "$program" "$@" > /tmp/killed 2>&1 &
    process=$!
    sleep "$delay"
    kill -9 $process || { cat /tmp/killed; return 1; }
    wait $process 2> /dev/null
    return 0
}

# Prints the broker's answer to GET $1. Runs in the broker's machine.
rest() {
    wget -q -O - --header "Authorization: Bearer $(cat /root/state/admin.token)" "http://127.0.0.1:7655/$1"
}

# Starts the broker with the further flags, and waits until a new guest would get a session.
broker_start() {
    # Without a jail: SoftRoCE sends by write(2) to the device, which the kernel allows only with the very credentials that opened it. An
    # adapter sends without a system call. The warm-up of workers would take a minute under emulation.
    HAWSER_WARM_UP=off dash /opt/hawser/bin/hawser-broker -Dhawser.gpu.backend=software -Dhawser.listen.host=0.0.0.0 \
        -Dhawser.state-dir=/root/state -Dhawser.worker.start-timeout=600s -Dhawser.worker.jail=off \
        -Dhawser.worker.environment=PATH,TMPDIR,HAWSER_WARM_UP "$@" > /root/state.log 2>&1 &
    echo $! > /root/broker.pid
    await_while "$(cat /root/broker.pid)" 500 broker_is_ready || { echo "$result"; tail -n 25 /root/state.log; return 1; }
    cat /root/state/default.token
}
broker_is_ready() { rest q/health/ready 2> /dev/null | grep -q '"UP"'; }
