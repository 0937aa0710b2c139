# shellcheck shell=bash disable=SC2015,SC2034,SC2086,SC2154 # variables of appliance/remote-test
# Steps of the lane `remote` during which certificates, tokens, quotas and links change. Sourced by appliance/remote-test.

shown_certificate() {
    openssl s_client -connect $broker_address:$tls_port < /dev/null 2> /dev/null |
        openssl x509 -noout -fingerprint 2> /dev/null
}
shows() { [ "$(shown_certificate)" = "$(openssl x509 -noout -fingerprint -in "$work/$1.pem")" ]; }

check_renewal() {
    local held
    begin_hold b hold
    held=$hold_pid
    use_certificate over
    await 300 shows over
    refused a "certificate has expired"
    use_certificate renewed
    await 300 shows renewed
    run_program a drv_vector_add
    end_hold b "$held"
    result="a session continued through both changes"
}

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

check_revoked() {
    local held key
    ctl tokens create a --out "$work/short.token" > /dev/null
    key=$(cut -d. -f1 "$work/short.token")
    install -m 640 -g 44 "$work/short.token" "$work/machines/host-a/etc/hawser/short.token"
    begin_hold a HAWSER_TOKEN_FILE=/etc/hawser/short.token hold
    held=$hold_pid
    ctl tokens revoke --yes a "$key" > /dev/null
    lose_hold a "$held" 300
    refused a "token" HAWSER_TOKEN_FILE=/etc/hawser/short.token
    local said=$result
    run_program a drv_vector_add
    await 300 is_idle
    result=$said
}

check_cut() {
    local held start
    begin_hold a hold
    held=$hold_pid
    ip link set veth-a down
    start=$SECONDS
    lose_hold a "$held" 300
    local guest_s=$((SECONDS - start))
    await 300 is_idle
    local broker_s=$((SECONDS - start))
    # A program that waits for an answer, and an idle program, must also notice the cut.
    ip link set veth-a up
    await 300 reaches a $tls_port
    begin_hold a hold --idle 1
    held=$hold_pid
    ip link set veth-a down
    start=$SECONDS
    await 300 is_idle
    local idle_s=$((SECONDS - start))
    ip link set veth-a up
    close_hold a
    local status=0
    wait "$held" || status=$?
    [ $status = 3 ] ||
        { result="an idle program continued without its session: $status: $(cat "$work/hold-a.out")"; return 1; }
    await 300 reaches a $tls_port
    run_program a drv_vector_add
    result="program ended after $guest_s s, broker's session after $broker_s s, an idle one after $idle_s s"
}

build_delay_line() {
    gcc -std=c11 -O2 -Wall -Wextra -Werror -o "$work/delay_line" "$root/appliance/remote/delay_line.c"
}

delay_begin() {
    "$work/delay_line" far near "$1" > "$work/delay.out" 2>&1 < /dev/null &
    delay_pid=$!
    await 120 grep -qs READY "$work/delay.out" || { result+=": $(cat "$work/delay.out")"; return 1; }
    ip link set near netns "${machine_pid[a]}"
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
    local delay_us=$1 program text='' start seconds least
    if [ "$delay_us" != 0 ]; then
        delay_begin "$delay_us"
        text="ping $(as_root a ping -c 3 -A $broker_address | sed -n 's/.*= *[0-9.]*\/\([0-9.]*\)\/.*/\1/p') ms; "
    fi
    for program in drv_vector_add drv_many_calls drv_large_copies; do
        start=$EPOCHREALTIME
        run_program a $program
        seconds=$(seconds_since "$start")
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
