# shellcheck shell=bash disable=SC2015,SC2034,SC2086,SC2154 # variables of appliance/remote-test
# The hosts of the lane `remote`, programs on them, and sessions that they hold. Sourced by appliance/remote-test.

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

# Starts host $1 with the address $2.
start_host() {
    local host=$1 tree=$work/machines/host-$1
    make_tree "$tree" "$host"
    mount --bind "$tree" "$tree"
    mount --bind "$package/runtime" "$tree/opt/ctl/runtime"
    mount -o remount,ro,bind "$tree/opt/ctl/runtime"
    machine_start "$host" "$2" "$tree" /bin/sh -c 'echo up > /run/up && exec sleep 100000'
    await_while "${machine_pid[$host]}" 300 as_root "$host" test -e /run/up
    nsenter -t "${machine_pid[$host]}" -u hostname "host-$host.example"
    result="$2, $(du -smx "$tree" | cut -f1) MiB with the test's programs"
}

# Runs a command in host $1 as root, with the variables before it.
as_root() {
    local host=$1
    shift
    nsenter -t "${machine_pid[$host]}" -m -n -p -i -u -r --wdns=/ \
        /bin/busybox env -i PATH=/opt/bin:/bin:/opt/ctl/bin HOME=/root "$@"
}

# The same as a user in the group video, which can read the settings.
as_user() {
    local host=$1
    shift
    nsenter -t "${machine_pid[$host]}" -m -n -p -i -u -r --wdns=/ -S 1000 -G 44 \
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
    jq -se 'length > 0 and all(.carrier == "tls")' "$stats" > /dev/null || { result="not over TLS: $(cat "$stats")"; return 1; }
    round_trips=$(jq -s 'map(.round_trips) | add' "$stats")
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
    jq -e --argjson bytes $((mib << 20)) 'any(..; . == $bytes)' "$work/answer" > /dev/null || { result="not $mib MiB: $(cat "$work/answer")"; return 1; }
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
    nsenter -t "${machine_pid[$1]}" -m -n -p -i -u -r --wdns=/ -S 1000 -G 1000 \
        /bin/busybox env -i /opt/bin/drv_vector_add > "$work/answer" 2>&1 || status=$?
    [ $status = 1 ] && grep -q "/etc/hawser/guest.toml: Permission denied" "$work/answer" ||
        { result="$status: $(cat "$work/answer")"; return 1; }
    result=$(grep '^hawser' "$work/answer")
}

# Starts `hold` on host $1 with variables and arguments $2..., and waits until it has its session. end_hold ends it.
begin_hold() {
    local host=$1
    shift
    rm -f "$work/hold-$host" "$work/hold-$host.out"
    mkfifo "$work/hold-$host"
    as_user "$host" HAWSER_CONNECT_TIMEOUT_MS=300000 "$@" < "$work/hold-$host" > "$work/hold-$host.out" 2>&1 &
    hold_pid=$!
    eval "exec {hold_$host}> '$work/hold-$host'"
    await 600 grep -qs READY "$work/hold-$host.out" ||
        { result+=": $(cat "$work/hold-$host.out")"; return 1; }
}

close_hold() { eval "exec {hold_$1}>&-"; }

# Ends the hold of host $1, process $2; it must exit with 0.
end_hold() {
    close_hold "$1"
    local status=0
    wait "$2" || status=$?
    [ $status = 0 ] && grep -q '^PASS hold: ' "$work/hold-$1.out" ||
        { result="hold: $status: $(cat "$work/hold-$1.out")"; return 1; }
}

# Waits for the end of the hold of host $1, process $2, within $3 seconds; it must report a lost device.
lose_hold() {
    local status=0
    await "$3" not kill -0 "$2" 2> /dev/null ||
        { result+=": $(cat "$work/hold-$1.out")"; return 1; }
    wait "$2" || status=$?
    close_hold "$1"
    [ $status = 3 ] && grep -q '^ERROR ' "$work/hold-$1.out" ||
        { result="hold: $status: $(cat "$work/hold-$1.out")"; return 1; }
}

check_session_shown() {
    local held
    begin_hold a hold
    held=$hold_pid
    ctl sessions list > "$work/answer"
    grep -q 'hold' "$work/answer" && grep -qw a "$work/answer" || { result=$(cat "$work/answer"); return 1; }
    ctl sessions list --json > "$work/answer"
    grep -q 'host-a.example' "$work/answer" && grep -q '10.77.0.11' "$work/answer" ||
        { result=$(cat "$work/answer"); return 1; }
    end_hold a "$held"
    await 300 is_idle
}
