# shellcheck shell=bash
# The steps of appliance/remote-test in its namespaces. Sourced by bash; the sourcing script sets root, work, me, name,
# broker_address, tls_port, http_port, backend and defines say and die.
# shellcheck disable=SC1007,SC2012,SC2015,SC2034,SC2086,SC2154

steps=0 current= result= broker_pid=
declare -A host_pid=()
programs=(drv_vector_add drv_large_copies drv_pageable_copies drv_threads drv_callbacks drv_streams_events drv_graphs)
state=$work/state

# Runs the function $3... as step $2 of machine $1, and prints its result in one line; the function sets `result`.
# The call is not part of a condition, so that each failing command ends the test.
step() {
    local start
    current="$1: $2"
    result=
    start=$(date +%s.%N)
    "${@:3}"
    steps=$((steps + 1))
    printf '%-7s %-62s %6s s  %s\n' "$1" "$2" \
        "$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')" "$result"
    current=
}

# Reports the failed step, with the end of the broker's log.
finish() {
    local status=$?
    if [ $status != 0 ] && [ -n "$current" ]; then
        [ ! -e "$state.log" ] || tail -n 15 "$state.log" >&2
        say "$me: $current: failed${result:+: $result}"
    fi
}

# Waits up to $1 seconds until the command $3... succeeds, for $2.
await() {
    local limit=$1 what=$2 deadline
    shift 2
    deadline=$((SECONDS + limit))
    until "$@"; do
        [ $SECONDS -lt $deadline ] || { result="$what: did not happen within $limit s${result:+ ($result)}"; return 1; }
        sleep 0.1 # a shell cannot wait for these states otherwise
    done
}

# ---- network ----

# Makes the broker's machine with a bridge; start_host connects each host to it.
make_network() {
    ip link set lo up
    ip link add br0 type bridge
    ip addr add $broker_address/24 dev br0
    ip link set br0 up
}

# ---- certificates ----

# Makes NAME.key and NAME.pem for the names $3, valid for $4 days, signed by the authority $1.
make_certificate() {
    local authority=$1 file=$2 names=$3 days=$4
    (
        cd "$work"
        openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$file.key"
        echo "subjectAltName=$names" > "$file.ext"
        openssl req -new -key "$file.key" -subj "/CN=$file" |
            openssl x509 -req -CA "$authority.pem" -CAkey "$authority.key" -CAcreateserial -days "$days" \
                -extfile "$file.ext" -out "$file.pem"
    ) > "$work/openssl.log" 2>&1 || { cat "$work/openssl.log" >&2; die "openssl did not make $file"; }
}

make_authority() {
    (
        cd "$work"
        openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$1.key"
        openssl req -x509 -new -key "$1.key" -subj "/CN=$1 of $me" -days 30 -out "$1.pem"
    ) > "$work/openssl.log" 2>&1 || { cat "$work/openssl.log" >&2; die "openssl did not make $1"; }
}

make_certificates() {
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

# ---- broker ----

unpack() {
    local folders
    tar -xf "$1" -C "$work/machines"
    folders=("$work"/machines/hawser-*)
    package=${folders[0]}
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
    await 900 "the broker's start" broker_answers
    result="guests $(sed -n 's/.*"guestTls":"\([^"]*\)".*/\1/p' "$state/endpoints.json")"
    result+=", REST $(sed -n 's/.*"http":"\([^"]*\)".*/\1/p' "$state/endpoints.json")"
}

broker_answers() {
    kill -0 "$broker_pid" 2> /dev/null || { tail -n 20 "$state.log" >&2; die "the broker did not start"; }
    [ -s "$state/endpoints.json" ] &&
        ctl gpus --json > "$work/gpus.json" 2> "$work/gpus.err" && grep -q '"uuid"' "$work/gpus.json"
}

# hawserctl on the broker's machine, by the state folder; it verifies the certificate there, too.
ctl() { HAWSERCTL_STATE_DIR=$state HAWSERCTL_CA_FILE=$work/ca.pem HOME=$work timeout 300 "$package/bin/hawserctl" "$@"; }

# Prints a number from a JSON document of ctl.
number() { sed -n "s/.*\"$1\"[[:space:]]*:[[:space:]]*\(-\{0,1\}[0-9][0-9]*\).*/\1/p" | sed -n 1p; }

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
is_idle() {
    ctl sessions list --json > "$work/sessions.json" &&
        [ "$(tr -d '[:space:]' < "$work/sessions.json")" = "[]" ] && [ "$(connections)" = 0 ]
}

baseline() {
    await 600 "the pool's workers" pool_full || die "$result"
    workers_before=$(workers)
    descriptors_before=$(descriptors)
}
# Whether the pool is full and no worker is starting: a starting worker changes the number of the broker's descriptors.
pool_full() {
    ctl broker --json > "$work/broker.json" && [ "$(workers)" -ge 2 ] &&
        [ "$(number starting < "$work/broker.json")" = 0 ] && [ "$(number assigned < "$work/broker.json")" = 0 ] &&
        [ "$(number ready < "$work/broker.json")" -ge 2 ]
}

# ---- hosts ----

# Copies the file $2 to $3 in the folder $1, with its libraries except Hawser's.
put_with_libraries() {
    install -D "$2" "$1$3"
    put_libraries "$1" "$2"
}

# Copies into the folder $1 the libraries of the file $2, except Hawser's.
put_libraries() {
    local tree=$1 file=$2 library
    while read -r library; do
        [ -e "$tree$library" ] || install -D "$library" "$tree$library"
    done < <(LD_LIBRARY_PATH=$package/lib/guest ldd "$file" 2> /dev/null |
        sed -n -e 's/^[[:space:]]*\(\/[^ ]*\) (0x.*/\1/p' -e 's/.* => \(\/[^ ]*\) (0x.*/\1/p' |
        grep -v -e libcuda -e libcudart)
}

# Makes the file system of a host: basic files, the files of the guest's package with the libraries enabled as by its
# script, programs, hawserctl, and settings.
make_tree() {
    local tree=$1 host=$2 file library
    mkdir -p "$tree"/{bin,dev,proc,tmp,etc/hawser,run,root,opt/ctl/lib,opt/ctl/bin,opt/ctl/runtime,home/user}
    chmod 1777 "$tree/tmp"
    chown 1000:1000 "$tree/home/user"
    install "$(command -v busybox)" "$tree/bin/busybox"
    "$tree/bin/busybox" --list | grep -vx busybox | while read -r file; do ln -sf busybox "$tree/bin/$file"; done
    dpkg-deb -x "$guest_package" "$tree"
    for file in "$tree"/usr/bin/hawser "$tree"/usr/lib/hawser/guest/*; do
        put_libraries "$tree" "$file"
    done
    mkdir "$tree/etc/ld.so.conf.d"
    echo 'include /etc/ld.so.conf.d/*.conf' > "$tree/etc/ld.so.conf"
    switch_libraries on "$host"
    for library in libssl.so.3 libssl.so.1.1; do
        file=$(ldconfig -p | sed -n "s/.*${library//./\\.} (.*x86-64.*) => //p" | sed -n 1p)
        [ -z "$file" ] || put_with_libraries "$tree" "$file" "$file"
    done
    for file in "${programs[@]}" hold drv_fill_memory drv_many_calls; do
        put_with_libraries "$tree" "$package/lib/programs/$file" "/opt/bin/$file"
    done
    cp -r "$package/lib/programs/ptx" "$tree/opt/bin/ptx"
    cp "$package/VERSION" "$tree/opt/ctl/"
    cp "$package/lib/find-java" "$tree/opt/ctl/lib/"
    cp -r "$package/lib/ctl" "$tree/opt/ctl/lib/"
    cp "$package/bin/hawserctl" "$tree/opt/ctl/bin/"
    put_with_libraries "$tree" "$package/runtime/bin/java" /tmp/java # only for its C libraries; the runtime is bind-mounted
    put_with_libraries "$tree" "$package/runtime/lib/server/libjvm.so" /tmp/libjvm.so
    put_with_libraries "$tree" "$(command -v script)" /bin/script
    rm -f "$tree/tmp/java" "$tree/tmp/libjvm.so"
    mkdir -p "$tree/lib64"
    [ -e "$tree/lib64/ld-linux-x86-64.so.2" ] || cp -L /lib64/ld-linux-x86-64.so.2 "$tree/lib64/"
    printf 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n' > "$tree/etc/passwd"
    printf 'root:x:0:\nvideo:x:44:user\nuser:x:1000:\n' > "$tree/etc/group"
    printf '127.0.0.1 localhost\n' | cat - "$work/hosts" > "$tree/etc/hosts"
    install -m 644 "$work/ca.pem" "$tree/etc/hawser/ca.pem"
    install -m 644 "$work/stranger.pem" "$tree/etc/hawser/stranger.pem"
    for file in a b local; do
        install -m 640 -g 44 "$work/$file.token" "$tree/etc/hawser/$file.token"
    done
    cat > "$tree/etc/hawser/guest.toml" <<TOML
[guest]
carrier = "auto"
broker = "tls://$name"
ca_file = "/etc/hawser/ca.pem"
token_file = "/etc/hawser/$host.token"
TOML
    grep -v ca_file "$tree/etc/hawser/guest.toml" > "$tree/etc/hawser/no-ca.toml"
    chgrp 44 "$tree"/etc/hawser/*.toml
    chmod 640 "$tree"/etc/hawser/*.toml
}

# The host's first process enters its own root in new namespaces, where nothing else is visible, and then waits for
# its end.
# shellcheck disable=SC2016 # expanded by the host's shell
init='
    tree=$1
    for node in null zero random urandom tty; do
        : > "$tree/dev/$node"
        mount --bind "/dev/$node" "$tree/dev/$node"
    done
    mkdir "$tree/dev/shm" "$tree/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$tree/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$tree/dev/pts"
    ln -s pts/ptmx "$tree/dev/ptmx"
    mount -t proc proc "$tree/proc"
    mount --bind "$2/runtime" "$tree/opt/ctl/runtime"
    mount -o remount,ro,bind "$tree/opt/ctl/runtime"
    cd "$tree"
    mkdir old
    pivot_root . old
    exec chroot . /bin/sh -c "umount -l /old && rmdir /old && echo up > /run/up && exec sleep 100000"
'

# Starts host $1 with the address $2.
start_host() {
    local host=$1 address=$2 tree=$work/machines/host-$1
    make_tree "$tree" "$host"
    mount --bind "$tree" "$tree"
    mount --make-private "$tree"
    unshare --mount --net --ipc --uts --pid --fork --kill-child --propagation private \
        sh -e -c "$init" init "$tree" "$package" > "$work/host-$host.log" 2>&1 < /dev/null &
    local parent=$!
    await 300 "the host's start" test -e "$tree/run/up" || { result+=": $(cat "$work/host-$host.log")"; return 1; }
    host_pid[$host]=$(pgrep -P $parent)
    ip link add "veth-$host" type veth peer name eth0 netns "${host_pid[$host]}"
    ip link set "veth-$host" master br0 up
    in_net "$host" ip link set lo up
    in_net "$host" ip addr add "$address/24" dev eth0
    in_net "$host" ip link set eth0 up
    nsenter -t "${host_pid[$host]}" -u hostname "host-$host.example"
    result="$address, $(du -sm "$tree" | cut -f1) MiB with the test's programs"
}

# Runs a command of this machine in the host's network.
in_net() {
    local host=$1
    shift
    nsenter -t "${host_pid[$host]}" -n "$@"
}

# Runs a command in host $1 as root, with the variables before it.
as_root() {
    local host=$1
    shift
    nsenter -t "${host_pid[$host]}" -m -n -p -i -u -r --wdns=/ \
        /bin/busybox env -i PATH=/opt/bin:/bin:/opt/ctl/bin HOME=/root "$@"
}

# The same as a user in the group video, which can read the settings.
as_user() {
    local host=$1
    shift
    nsenter -t "${host_pid[$host]}" -m -n -p -i -u -r --wdns=/ -S 1000 -G 44 \
        /bin/busybox env -i PATH=/opt/bin:/usr/bin:/bin HOME=/home/user \
        HAWSER_CONNECT_TIMEOUT_MS=20000 "$@"
}

# Whether host $1 can connect to port $2 of the broker's machine.
reaches() { as_root "$1" nc -w 20 $broker_address "$2" -e /bin/true > /dev/null 2>&1 < /dev/null; }

check_isolation() {
    : > /dev/shm/of-the-brokers-machine
    as_root "$1" test ! -e /dev/shm/of-the-brokers-machine || { result="/dev/shm is shared"; return 1; }
    rm /dev/shm/of-the-brokers-machine
    as_root "$1" test ! -e "$state/endpoints.json" || { result="the broker's state folder is reachable"; return 1; }
    as_root "$1" ps > "$work/answer"
    grep -q sleep "$work/answer" || { result="ps shows nothing"; return 1; }
    ! grep -q java "$work/answer" || { result="the broker's processes are visible"; return 1; }
    reaches "$1" $tls_port || { result="the TLS port is not reachable"; return 1; }
    ! reaches "$1" 7654 || { result="the plain port is reachable"; return 1; }
}

# ---- programs on hosts ----

# Runs program $2 with variables $3...; it must pass over TLS. Sets `round_trips`.
run_program() {
    local host=$1 program=$2 status=0
    shift 2
    local stats=$work/machines/host-$host/tmp/stats
    rm -f "$stats"
    as_user "$host" HAWSER_CONNECT_TIMEOUT_MS=300000 HAWSER_STATS=/tmp/stats "$@" timeout 1200 "$program" > "$work/answer" 2>&1 || status=$?
    if [ $status != 0 ] || ! grep -q "^PASS $program: " "$work/answer"; then
        result="status $status: $(cat "$work/answer")"
        return 1
    fi
    if ! grep -q '"carrier":"tls"' "$stats" || grep -qv '"carrier":"tls"' "$stats"; then
        result="not over TLS: $(cat "$stats")"
        return 1
    fi
    round_trips=$(grep -o '"round_trips":[0-9]*' "$stats" | awk -F: '{ sum += $2 } END { print sum + 0 }')
    result="$round_trips round trips; $(sed -n "s/^PASS $program: //p" "$work/answer")"
}

# Runs a program with the variables $3...; it must end with CUDA_ERROR_NO_DEVICE, after one line of Hawser that contains $2.
refused() {
    local host=$1 reason=$2 status=0
    shift 2
    as_user "$host" "$@" timeout 600 drv_vector_add > "$work/answer" 2>&1 || status=$?
    result=$(grep '^hawser' "$work/answer" || true)
    [ $status = 1 ] && grep -q "got 100 CUDA_ERROR_NO_DEVICE" "$work/answer" &&
        [ "$(grep -c '^hawser' "$work/answer")" = 1 ] &&
        [[ $result == *"$reason"* ]] ||
        { result="status $status, expected \"$reason\": $(cat "$work/answer")"; return 1; }
}

check_doctor() {
    as_user "$1" HAWSER_CONNECT_TIMEOUT_MS=300000 timeout 600 hawser doctor /opt/bin/drv_vector_add > "$work/answer" 2>&1 ||
        { result=$(cat "$work/answer"); return 1; }
    grep -q "Nothing stands in the way" "$work/answer" && grep -q "the token is accepted" "$work/answer" ||
        { result=$(cat "$work/answer"); return 1; }
    result=$(sed -n 's/^ok *TCP: //p' "$work/answer")
}

# Runs hawser smi on host $1 with the variables $3...; it must show a GPU of $2 MiB.
check_smi() {
    local host=$1 mib=$2
    shift 2
    as_user "$host" HAWSER_CONNECT_TIMEOUT_MS=300000 "$@" timeout 600 hawser smi --json > "$work/answer" 2>&1 ||
        { result=$(cat "$work/answer"); return 1; }
    grep -q "$((mib << 20))" "$work/answer" || { result="not $mib MiB: $(cat "$work/answer")"; return 1; }
}

# With the libraries disabled a program finds no CUDA; `hawser run` provides it.
check_hawser_run() {
    switch_libraries off "$1"
    ! as_user "$1" timeout 60 drv_vector_add > "$work/answer" 2>&1 || { result="the program found the disabled libraries"; return 1; }
    grep -q 'libcuda.so.1' "$work/answer" || { result=$(cat "$work/answer"); return 1; }
    as_user "$1" HAWSER_CONNECT_TIMEOUT_MS=300000 timeout 600 hawser run drv_vector_add > "$work/answer" 2>&1 && grep -q '^PASS' "$work/answer" ||
        { result=$(cat "$work/answer"); return 1; }
    switch_libraries on "$1"
}

# Enables or disables the libraries as the package's script does; the host has no ldconfig of its own.
switch_libraries() {
    local tree=$work/machines/host-$2
    "$tree/usr/bin/hawser" libraries "$1" --root "$tree" > "$work/answer" 2>&1 ||
        { result=$(cat "$work/answer"); return 1; }
}

check_settings_mode() {
    local status=0
    nsenter -t "${host_pid[$1]}" -m -n -p -i -u -r --wdns=/ -S 1000 -G 1000 \
        /bin/busybox env -i /opt/bin/drv_vector_add > "$work/answer" 2>&1 || status=$?
    [ $status = 1 ] && grep -q "/etc/hawser/guest.toml: Permission denied" "$work/answer" ||
        { result="$status: $(cat "$work/answer")"; return 1; }
    result=$(grep '^hawser' "$work/answer")
}

# Starts `hold` on host $1 with variables and arguments $2..., and waits until it has its session. hold_end ends it.
hold_start() {
    local host=$1
    shift
    rm -f "$work/hold-$host" "$work/hold-$host.out"
    mkfifo "$work/hold-$host"
    as_user "$host" HAWSER_CONNECT_TIMEOUT_MS=300000 "$@" < "$work/hold-$host" > "$work/hold-$host.out" 2>&1 &
    hold_pid=$!
    eval "exec {hold_$host}> '$work/hold-$host'"
    await 600 "READY of hold" grep -qs READY "$work/hold-$host.out" ||
        { result+=": $(cat "$work/hold-$host.out")"; return 1; }
}

hold_close() { eval "exec {hold_$1}>&-"; }

# Ends the hold of host $1, process $2; it must exit with 0.
hold_end() {
    hold_close "$1"
    local status=0
    wait "$2" || status=$?
    [ $status = 0 ] && grep -q '^PASS hold: ' "$work/hold-$1.out" ||
        { result="hold: $status: $(cat "$work/hold-$1.out")"; return 1; }
}

# Waits for the end of the hold of host $1, process $2, within $3 seconds; it must report a lost device.
hold_lost() {
    local status=0
    await "$3" "the program's end" eval "! kill -0 $2 2> /dev/null" ||
        { result+=": $(cat "$work/hold-$1.out")"; return 1; }
    wait "$2" || status=$?
    hold_close "$1"
    [ $status = 3 ] && grep -q '^ERROR ' "$work/hold-$1.out" ||
        { result="hold: $status: $(cat "$work/hold-$1.out")"; return 1; }
}

check_session_shown() {
    local held
    hold_start a hold
    held=$hold_pid
    ctl sessions list > "$work/answer"
    grep -q 'hold' "$work/answer" && grep -qw a "$work/answer" || { result=$(cat "$work/answer"); return 1; }
    ctl sessions list --json > "$work/answer"
    grep -q 'host-a.example' "$work/answer" && grep -q '10.77.0.11' "$work/answer" ||
        { result=$(cat "$work/answer"); return 1; }
    hold_end a "$held"
    await 300 "no session" is_idle
}

# ---- expired and renewed certificates ----

shown_certificate() {
    openssl s_client -connect $broker_address:$tls_port < /dev/null 2> /dev/null |
        openssl x509 -noout -fingerprint 2> /dev/null
}
shows() { [ "$(shown_certificate)" = "$(openssl x509 -noout -fingerprint -in "$work/$1.pem")" ]; }

check_renewal() {
    local held
    hold_start b hold
    held=$hold_pid
    use_certificate over
    await 300 "the certificate to be read" shows over
    refused a "certificate has expired"
    use_certificate renewed
    await 300 "the certificate to be read" shows renewed
    run_program a drv_vector_add
    hold_end b "$held"
    result="a session continued through both changes"
}

# ---- quotas ----

check_quotas() {
    local a b status=0
    as_user a HAWSER_CONNECT_TIMEOUT_MS=300000 timeout 1200 drv_fill_memory --total 512 > "$work/a.out" 2>&1 &
    a=$!
    as_user b HAWSER_CONNECT_TIMEOUT_MS=300000 timeout 1200 drv_fill_memory --total 256 > "$work/b.out" 2>&1 &
    b=$!
    wait $a || status=$?
    wait $b || status=$?
    grep -q '^PASS' "$work/a.out" && grep -q '^PASS' "$work/b.out" && [ $status = 0 ] ||
        { result="$(cat "$work/a.out" "$work/b.out")"; return 1; }
    result="a: $(sed -n 's/^PASS drv_fill_memory: //p' "$work/a.out")"
}

# ---- tokens ----

check_revoked() {
    local held key
    ctl tokens create a --out "$work/short.token" > /dev/null
    key=$(cut -d. -f1 "$work/short.token")
    install -m 640 -g 44 "$work/short.token" "$work/machines/host-a/etc/hawser/short.token"
    hold_start a HAWSER_TOKEN_FILE=/etc/hawser/short.token hold
    held=$hold_pid
    ctl tokens revoke --yes a "$key" > /dev/null
    hold_lost a "$held" 300
    refused a "token" HAWSER_TOKEN_FILE=/etc/hawser/short.token
    local said=$result
    run_program a drv_vector_add
    await 300 "no session" is_idle
    result=$said
}

# ---- links ----

check_cut() {
    local held start
    hold_start a hold
    held=$hold_pid
    ip link set veth-a down
    start=$SECONDS
    hold_lost a "$held" 300
    local guest_s=$((SECONDS - start))
    await 300 "the session's end at the broker" is_idle
    local broker_s=$((SECONDS - start))
    # A program that waits for an answer, and an idle program, must also notice the cut.
    ip link set veth-a up
    await 300 "the link" reaches a $tls_port
    hold_start a hold --idle 1
    held=$hold_pid
    ip link set veth-a down
    start=$SECONDS
    await 300 "the idle session's end at the broker" is_idle
    local idle_s=$((SECONDS - start))
    ip link set veth-a up
    hold_close a
    local status=0
    wait "$held" || status=$?
    [ $status = 3 ] ||
        { result="an idle program continued without its session: $status: $(cat "$work/hold-a.out")"; return 1; }
    await 300 "the link" reaches a $tls_port
    run_program a drv_vector_add
    result="program ended after $guest_s s, broker's session after $broker_s s, an idle one after $idle_s s"
}

build_delay_line() {
    gcc -std=c11 -O2 -Wall -Wextra -Werror -o "$work/delay_line" "$root/appliance/remote/delay_line.c"
}

delay_begin() {
    "$work/delay_line" far near "$1" > "$work/delay.out" 2>&1 < /dev/null &
    delay_pid=$!
    await 120 "the delayed link" grep -qs READY "$work/delay.out" || { result+=": $(cat "$work/delay.out")"; return 1; }
    ip link set near netns "${host_pid[a]}"
    ip link set far mtu 1500 txqueuelen 8192 up
    in_net a ip link set near mtu 1500 txqueuelen 8192 up
    # The addresses stay; only the path between them changes.
    ip route add 10.77.0.11/32 dev far src $broker_address
    in_net a ip route add $broker_address/32 dev near src 10.77.0.11
}

delay_end() {
    kill "$delay_pid" && wait "$delay_pid" || true # this removes its devices and their routes
}

# Runs programs over a link of $1 us each way, and checks that their number of round trips accounts for all of their
# waiting.
check_delay() {
    local delay_us=$1 program text= start seconds least
    if [ "$delay_us" != 0 ]; then
        delay_begin "$delay_us"
        text="ping $(as_root a ping -c 3 -A $broker_address | sed -n 's/.*= *[0-9.]*\/\([0-9.]*\)\/.*/\1/p') ms; "
    fi
    for program in drv_vector_add drv_many_calls drv_large_copies; do
        start=$(date +%s.%N)
        run_program a $program
        seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f", b - a }')
        [ -e "$work/$program.trips" ] || echo "$round_trips" > "$work/$program.trips"
        [ "$(cat "$work/$program.trips")" = "$round_trips" ] ||
            { result="$program: $round_trips round trips, $(cat "$work/$program.trips") without delay"; return 1; }
        # Each round trip waits for the link twice. A faster program has miscounted, or the link has no delay.
        least=$(awk -v n="$round_trips" -v us="$delay_us" 'BEGIN { print n * 2 * us / 1000000 }')
        awk -v s="$seconds" -v least="$least" 'BEGIN { exit !(s >= least) }' ||
            { result="$program took $seconds s for $round_trips round trips, which take $least s at least"; return 1; }
        text+="$program $round_trips round trips $seconds s; "
    done
    [ "$delay_us" = 0 ] || delay_end
    result=${text%; }
}

# ---- hawserctl on a remote host ----

remote_ctl() {
    local host=$1
    shift
    as_root "$host" HAWSERCTL_URL=https://$name:$http_port "$@"
}

knows() { remote_ctl "$@" who > "$work/answer" 2>&1; }

check_hawserctl() {
    local host=$1 tree=$work/machines/host-$1 status=0 role
    for role in operator admin; do
        openssl rand -hex 16 > "$tree/root/$role.password"
        chmod 600 "$tree/root/$role.password"
        "$package/bin/hawser-broker" --set-password $role $role -Dhawser.state-dir="$state" \
            < "$tree/root/$role.password" > "$work/answer" 2>&1 ||
            { result=$(cat "$work/answer"); return 1; }
    done
    local operator=(hawserctl --ca-file /etc/hawser/ca.pem --user operator --password-file /root/operator.password)
    # The broker reads a changed users' file while it runs.
    await 300 "the user to be known" knows "$host" "${operator[@]}" || { result+=": $(cat "$work/answer")"; return 1; }
    grep -q operator "$work/answer" || { result=$(cat "$work/answer"); return 1; }
    remote_ctl "$host" "${operator[@]}" vgpus > "$work/answer" 2>&1 && grep -q '^a  *' "$work/answer" ||
        { result=$(cat "$work/answer"); return 1; }
    remote_ctl "$host" "${operator[@]}" vgpus change b --share 60 > "$work/answer" 2>&1 ||
        { result=$(cat "$work/answer"); return 1; }
    [ "$(ctl vgpus show b --json | number computeShare)" = 60 ] ||
        { result="the share did not change: $(ctl vgpus show b)"; return 1; }
    # hawserctl sends nothing to a server that is not the broker, and prints the reason.
    expect_ctl 3 "trust" "$host" hawserctl --ca-file /etc/hawser/stranger.pem --user operator \
        --password-file /root/operator.password vgpus
    expect_ctl 3 "trust" "$host" hawserctl --user operator --password-file /root/operator.password vgpus
    expect_ctl 3 "other.example" "$host" HAWSERCTL_URL=https://other.example:$http_port "${operator[@]}" vgpus
    expect_ctl 2 "certificate" "$host" hawserctl --ca-file /etc/hawser/guest.toml --user operator \
        --password-file /root/operator.password vgpus
    expect_ctl 4 "" "$host" "${operator[@]}" audit
    expect_ctl 3 "" "$host" HAWSERCTL_URL=http://$name:$http_port "${operator[@]}" vgpus
    # A login, after which no password is needed, and the settings file.
    mkdir -p "$tree/root/.config/hawser"
    printf 'url = "https://%s:%s"\nca-file = "/etc/hawser/ca.pem"\n' $name $http_port \
        > "$tree/root/.config/hawser/ctl.toml"
    as_root "$host" hawserctl --user operator --password-file /root/operator.password login > "$work/answer" 2>&1 &&
        as_root "$host" hawserctl gpus > "$work/answer" 2>&1 &&
            as_root "$host" hawserctl logout > "$work/answer" 2>&1 ||
        { result=$(cat "$work/answer"); return 1; }
    expect_ctl 4 "" "$host" hawserctl gpus
}

# Runs hawserctl with $4... on host $3; it must exit with $1 and print $2.
expect_ctl() {
    local code=$1 reason=$2 host=$3 status=0
    shift 3
    remote_ctl "$host" "$@" > "$work/answer" 2>&1 || status=$?
    [ $status = "$code" ] && grep -qF "$reason" "$work/answer" && [ "$(wc -l < "$work/answer")" -le 3 ] ||
        { result="$*: $status, expected $code and \"$reason\": $(cat "$work/answer")"; return 1; }
}

check_audit() {
    remote_ctl "$1" hawserctl --ca-file /etc/hawser/ca.pem --user admin --password-file /root/admin.password audit \
        > "$work/answer" 2>&1 ||
        { result=$(cat "$work/answer"); return 1; }
    grep -q 'operator.*10\.77\.0\.11\|10\.77\.0\.11.*operator' "$work/answer" ||
        { result="the change of b's share is missing: $(cat "$work/answer")"; return 1; }
    local secret
    for secret in a.token b.token short.token; do
        ! grep -qF -e "$(cut -d. -f2 "$work/$secret")" "$work/answer" ||
            { result="a secret is in the audit log"; return 1; }
        ! grep -qF -e "$(cut -d. -f2 "$work/$secret")" "$state.log" ||
            { result="a secret is in the broker's log"; return 1; }
    done
    result="$(wc -l < "$work/answer") lines"
}

# With a working session, because a broker without changes sends nothing.
check_top() {
    local status=0 held
    hold_start b hold
    held=$hold_pid
    # shellcheck disable=SC2016
    remote_ctl "$1" TERM=xterm SHELL=/bin/sh timeout 600 script -q -e -c 'stty rows 20 cols 60
        hawserctl --ca-file /etc/hawser/ca.pem --user operator --password-file /root/operator.password top -n 2
        printf "\nstatus %d\n" $?' /dev/null > "$work/top.out" 2>&1 < /dev/null || status=$?
    [ $status = 0 ] && grep -q '^status 0' "$work/top.out" || { result="$status: $(cat -v "$work/top.out")"; return 1; }
    # The alternate screen at first, the normal screen and the cursor at the end; no line longer than the window.
    grep -q $'\033\[?1049h' "$work/top.out" && grep -q $'\033\[?25h\033\[?1049l' "$work/top.out" ||
        { result="$(cat -v "$work/top.out")"; return 1; }
    [ "$(grep -o $'\033\[H' "$work/top.out" | wc -l)" = 2 ] ||
        { result="not two pictures: $(cat -v "$work/top.out")"; return 1; }
    tr -d '\r' < "$work/top.out" | sed -e 's/\x1b\[H/\n/g' -e 's/\x1b\[[?0-9;]*[A-Za-z]//g' |
        awk 'length > 60 { exit 1 }' || { result="a line is longer than the window"; return 1; }
    grep -q 'VGPU' "$work/top.out" && grep -q 'host-b' "$work/top.out" ||
        { result="$(cat -v "$work/top.out")"; return 1; }
    hold_end b "$held"
}

# ---- the broker's end ----

check_broker_restart() {
    local held
    hold_start a hold
    held=$hold_pid
    kill -9 "$broker_pid"
    wait "$broker_pid" 2> /dev/null || true
    hold_lost a "$held" 300
    refused a "Connection refused" HAWSER_CONNECT_TIMEOUT_MS=500
    start_remote_broker
    run_program a drv_vector_add
    check_smi b 256
    await 300 "no session" is_idle
    baseline
    result="vGPUs and tokens are unchanged"
}

is_as_before() { [ "$(workers)" -le "$workers_before" ] && [ "$(descriptors)" -le $((descriptors_before + 4)) ]; }

uses_nothing() {
    result="$(ctl vgpus show "$1" --json | number usedBytes) bytes"
    [ "$result" = "0 bytes" ] && result=
}

check_nothing_left() {
    local vgpu
    await 300 "no session, no connection" is_idle || { result+=": $(ss -tn)"; return 1; }
    for vgpu in a b; do
        await 300 "the memory of vGPU $vgpu" uses_nothing $vgpu || return 1
    done
    await 300 "workers and descriptors as before" is_as_before ||
        { result+=": workers $(workers), were $workers_before; descriptors $(descriptors), were $descriptors_before"
            return 1; }
    [ -z "$(find /dev/shm -mindepth 1)" ] || { result="left in /dev/shm: $(ls /dev/shm)"; return 1; }
    kill "$broker_pid"
    wait "$broker_pid" 2> /dev/null || true
    [ ! -e "$state/endpoints.json" ] || { result="the broker left endpoints.json behind"; return 1; }
    # The log of all brokers of this run.
    local defects
    defects=$(no_defects "$state.log") || { result="the broker's log reports a defect: $defects"; return 1; }
}
