# shellcheck shell=bash disable=SC2015,SC2034,SC2086,SC2154 # variables of appliance/remote-test
# Steps of the lane `remote` with hawserctl on a remote host. Sourced by appliance/remote-test.

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
    await 300 knows "$host" "${operator[@]}" || { result+=": $(cat "$work/answer")"; return 1; }
    grep -q operator "$work/answer" || { result=$(cat "$work/answer"); return 1; }
    remote_ctl "$host" "${operator[@]}" vgpus > "$work/answer" 2>&1 && grep -q '^a  *' "$work/answer" ||
        { result=$(cat "$work/answer"); return 1; }
    remote_ctl "$host" "${operator[@]}" vgpus change b --share 60 > "$work/answer" 2>&1 ||
        { result=$(cat "$work/answer"); return 1; }
    ctl_has "vgpus show b" '.computeShare == 60'
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
    begin_hold b hold
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
    end_hold b "$held"
}
