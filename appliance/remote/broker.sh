# shellcheck shell=bash disable=SC2015,SC2034,SC2086,SC2154 # variables of appliance/remote-test
# The broker of the lane `remote`, its certificates, and what it must have released at the end. Sourced by appliance/remote-test.

make_certificates() {
    cd "$work" || return
    make_authority ca
    make_authority stranger
    make_certificate ca good "DNS:$name" 30
    make_certificate ca renewed "DNS:$name" 60
    make_certificate ca over "DNS:$name" -1
    install -m 600 "$work/good.key" "$work/server.key"
    install -m 644 "$work/good.pem" "$work/server.pem"
}

# Replaces the broker's certificate. Key and certificate change one after the other, as with an operator.
use_certificate() {
    cp "$work/$1.key" "$work/server.key"
    cp "$work/$1.pem" "$work/server.pem"
}

unpack() {
    local folders
    tar -xf "$1" -C "$work/machines"
    folders=("$work"/machines/hawser-*)
    package=${folders[0]}
    libraries=$package/lib/guest
    [ -x "$package/bin/hawser-broker" ] || die "there is no distribution: $1"
    if [ -x "$package/lib/programs/vector_add" ]; then
        programs+=(vector_add matrix_mul reduction nbody)
    else
        say "$me: nvcc not found when building: only programs of the Driver API run"
    fi
}

start_remote_broker() {
    # The test takes address and credentials from the state folder, not from this machine's settings of hawserctl.
    "$package/bin/hawser-broker" -Dhawser.listen.host=127.0.0.1 -Dhawser.listen.tls-host=$broker_address \
        -Dhawser.listen.tls-port=$tls_port -Dhawser.http.host=$name -Dhawser.http.port=$http_port \
        -Dhawser.state-dir="$state" \
        -Dhawser.tls.certificate="$work/server.pem" -Dhawser.tls.key="$work/server.key" -Dhawser.tls.reload-period=1s \
        -Dhawser.gpu.backend="$backend" -Dhawser.worker.start-timeout=600s >> "$state.log" 2>&1 < /dev/null &
    broker_pid=$!
    await_while "$broker_pid" 900 broker_answers
    result=$(jq -r '"guests \(.guestTls), REST \(.http)"' "$state/endpoints.json")
}

broker_answers() { [ -s "$state/endpoints.json" ] && ctl_has gpus 'any(has("uuid"))' 2> "$work/gpus.err"; }

# hawserctl on the broker's machine, by the state folder; it verifies the certificate there, too.
ctl() { HAWSERCTL_STATE_DIR=$state HAWSERCTL_CA_FILE=$work/ca.pem HOME=$work timeout 300 "$package/bin/hawserctl" "$@"; }

# Whether the JSON of ctl's arguments $1 satisfies jq's filter and options $2...; otherwise `result` is the JSON.
ctl_has() {
    # shellcheck disable=SC2086 # words
    result=$(ctl $1 --json) && jq -e "${@:2}" <<< "$result" > /dev/null && result=''
}

make_vgpus() {
    ctl vgpus create a --memory 512M --owner host:host-a.example --carriers tcp > /dev/null
    ctl vgpus create b --memory 256M --owner host:host-b.example --carriers tcp --share 50 > /dev/null
    ctl vgpus create local --memory 64M --carriers shm > /dev/null
    local vgpu
    for vgpu in a b local; do
        ctl tokens create $vgpu --note "$me" --expires 1d --out "$work/$vgpu.token" > "$work/token.out"
        ! grep -qF -e "$(cut -d. -f2 "$work/$vgpu.token")" "$work/token.out" ||
            { result="hawserctl printed the secret"; return 1; }
        [ "$(stat -c %a "$work/$vgpu.token")" = 600 ] || { result="other users can read the token's file"; return 1; }
    done
    ctl vgpus show a > "$work/answer"
    grep -q 'host-a.example' "$work/answer" || { result=$(cat "$work/answer"); return 1; }
}

descriptors() { ls "/proc/$broker_pid/fd" | wc -l; }
workers() { pgrep -P "$broker_pid" | wc -l; }
# Prints the number of connections to the TLS port.
connections() { ss -Htn state established "( sport = :$tls_port )" | wc -l; }
is_idle() { ctl_has "sessions list" 'length == 0' && [ "$(connections)" = 0 ]; }

baseline() {
    await 600 pool_full
    workers_before=$(workers)
    descriptors_before=$(descriptors)
}
# Whether the pool is full and no worker is starting: a starting worker changes the number of the broker's descriptors.
pool_full() {
    [ "$(workers)" -ge 2 ] &&
        ctl_has broker '[.. | objects | select(has("starting"))][0] | .starting == 0 and .assigned == 0 and .ready >= 2'
}

check_broker_restart() {
    local held
    begin_hold a hold
    held=$hold_pid
    kill -9 "$broker_pid"
    wait "$broker_pid" 2> /dev/null || true
    lose_hold a "$held" 300
    refused a "Connection refused" HAWSER_CONNECT_TIMEOUT_MS=500
    start_remote_broker
    run_program a drv_vector_add
    check_smi b 256
    await 300 is_idle
    baseline
    result="vGPUs and tokens are unchanged"
}

is_as_before() { [ "$(workers)" -le "$workers_before" ] && [ "$(descriptors)" -le $((descriptors_before + 4)) ]; }

uses_nothing() { ctl_has "vgpus show $1" '.usedBytes == 0'; }

check_nothing_left() {
    local vgpu
    await 300 is_idle || { result+=": $(ss -tn)"; return 1; }
    for vgpu in a b; do
        await 300 uses_nothing $vgpu || return 1
    done
    await 300 is_as_before ||
        { result+=": workers $(workers), were $workers_before; descriptors $(descriptors), were $descriptors_before"
            return 1; }
    [ -z "$(find /dev/shm -mindepth 1)" ] || { result="left in /dev/shm: $(ls /dev/shm)"; return 1; }
    kill "$broker_pid"
    wait "$broker_pid" 2> /dev/null || true
    [ ! -e "$state/endpoints.json" ] || { result="the broker left endpoints.json behind"; return 1; }
    # The log of all brokers of this run.
    quietly no_defects "$state.log"
}
