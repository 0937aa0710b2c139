# shellcheck shell=bash disable=SC2015,SC2034,SC2154 # variables of ansible/test
# Checks of the lane `ansible` on the machines after a run. Sourced by ansible/test.

check_bare() {
    local name
    play bare-check --check
    for name in gpu1 remote el9; do
        ! on $name.example test -e /etc/hawser || { result="check mode made /etc/hawser on $name"; return 1; }
        [ -z "$(installed $name.example)" ] || { result="check mode installed packages on $name"; return 1; }
    done
    [ ! -e "$work/tokens" ] || { result="check mode made the folder of tokens"; return 1; }
}

# Lists Hawser's packages on machine $1 with their versions.
installed() {
    if [ "$1" = el9.example ]; then
        on "$1" "rpm -qa --queryformat '%{NAME} %{VERSION}\n' 'hawser-*' | sort"
    else
        on "$1" "dpkg-query -W -f '\${db:Status-Abbrev}\${Package} \${Version}\n' 'hawser-*' 2> /dev/null |
            sed -n 's/^ii *//p'"
    fi
}

# Runs with a key that did not sign the repository; the packages must be refused.
check_stranger() {
    local name
    cat > "$work/stranger.yml" <<YAML
---
- name: Guests, of a repository that a stranger has signed
  hosts: guests
  module_defaults:
    # Without the five retries with pauses, which would fail the same.
    ansible.builtin.apt_repository: {update_cache_retries: 1}
  roles:
    - role: packages
      packages_names: [hawser-guest]
      packages_source: repository
      packages_repository_key_src: $work/files/stranger.asc
YAML
    if playbook=$work/stranger.yml play stranger; then
        result="the repository was not refused"
        return 1
    fi
    for name in remote el9; do
        grep -q "^$name.example .*unreachable=0 *failed=1 " "$work/stranger.log" ||
            { result="$name: $result"; return 1; }
        [ -z "$(installed $name.example)" ] || { result="the package was installed on $name"; return 1; }
    done
    grep -q '^fatal: \[remote.example\].*\(is not signed\|NO_PUBKEY\)' "$work/stranger.log" &&
        grep -q '^fatal: \[el9.example\].*GPG' "$work/stranger.log" ||
            { result="refused for another reason: $result"; return 1; }
    result="refused by apt and dnf"
}

first_run() {
    play first
    grep -q 'This machine has no systemd' "$work/first.log" ||
        { result="the role did not report that it started nothing"; return 1; }
}

check_packages() {
    local name
    for name in gpu1 remote el9; do
        result+="${result:+; }$name $(installed $name.example | cut -d' ' -f1 | sed 's/hawser-//' | paste -sd,)"
    done
    [ "$result" = "gpu1 broker,common,hypervisor; remote guest; el9 broker,common,guest,hypervisor" ]
    # Only settings differ from the packages' files.
    on el9.example "rpm -V hawser-common hawser-broker hawser-guest hawser-hypervisor || true" > "$work/answer"
    ! grep -v ' c /etc/hawser/' "$work/answer" || { result=$(cat "$work/answer"); return 1; }
}

# The file $2 of machine $1 must contain line $3.
has_line() { on "$1" cat "$2" > "$work/answer" &&
    grep -qxF -- "$3" "$work/answer" || { result="no line $3 in $2: $(cat "$work/answer")"; return 1; }; }
# The file $2 of machine $1 must have mode, user and group $3.
has_mode() {
    result=$(on "$1" stat -c "'%a %U %G'" "$2")
    [ "$result" = "$3" ] || { result="$2: $result, not $3"; return 1; }
}

check_files() {
    local line
    for line in HAWSER_LISTEN_HOST=127.0.0.1 HAWSER_LISTEN_TLS_HOST=0.0.0.0 HAWSER_LISTEN_TLS_PORT=7656 \
        HAWSER_LISTEN_PLAIN=true HAWSER_HTTP_HOST=gpu1.example HAWSER_TLS_CERTIFICATE=/etc/hawser/broker.pem \
        HAWSER_TURNS_MODE=on HAWSER_WORKER_POOL_SIZE=1 HAWSER_GPU_BACKEND=software; do
        has_line gpu1.example /etc/hawser/broker.conf "$line"
    done
    has_line el9.example /etc/hawser/broker.conf HAWSER_SESSIONS_MAX=7
    has_mode el9.example /etc/hawser/broker.conf "640 root hawser"
    has_mode el9.example /etc/hawser/guest.toml "640 root video"
    on el9.example test -x /etc/libvirt/hooks/qemu.d/50-hawser
    has_mode gpu1.example /etc/hawser/broker.conf "640 root hawser"
    has_mode gpu1.example /etc/hawser/broker.key "640 root hawser"
    has_line gpu1.example /etc/hawser/hawserd.conf 'guest.broker = "tls://gpu1.example"'
    has_line gpu1.example /etc/hawser/hawserd.conf 'region.mode = "0600"'
    has_line remote.example /etc/hawser/guest.toml 'broker = "tls://gpu1.example"'
    has_line remote.example /etc/hawser/guest.toml 'token_file = "/etc/hawser/token"'
    has_mode remote.example /etc/hawser/guest.toml "640 root video"
    has_mode remote.example /etc/hawser/token "640 root video"
    [ "$(stat -c %a "$work/tokens" "$work/tokens/research1.token" | paste -sd' ')" = "700 600" ] ||
        { result="other users can read the controller's tokens"; return 1; }
    [ "$(on remote.example cat /etc/hawser/token)" = "$(cat "$work/tokens/research1.token")" ] ||
        { result="the guest has another token"; return 1; }
    ! grep -qF -e "$(cut -d. -f2 "$work/tokens/research1.token")" "$work"/*.log ||
        { result="the token is in Ansible's output"; return 1; }
    ! grep -qF -e "$(cat "$work/files/password")" "$work"/*.log ||
        { result="the password is in Ansible's output"; return 1; }
    result="modes and lines are right; no secret in Ansible's output"
}

check_services() {
    local unit
    for unit in hawser-broker hawserd; do
        [ "$(on gpu1.example systemctl is-active $unit)" = active ] ||
            { result="$unit: $(on gpu1.example systemctl status $unit)"; return 1; }
        [ "$(on gpu1.example systemctl is-enabled $unit)" = enabled ] || { result="$unit is not enabled"; return 1; }
    done
    result="active and enabled"
}

broker_ctl() {
    on gpu1.example "HAWSERCTL_STATE_DIR=/var/lib/hawser/broker HAWSERCTL_CA_FILE=/etc/hawser/ca.pem hawserctl $*"
}

# The vGPU at the broker must have memory $1 (bytes) and share $2.
check_vgpu() {
    broker_ctl vgpus show research1 --json > "$work/answer"
    jq -e --argjson bytes "$1" --argjson share "$2" '.memoryBytes == $bytes and .computeShare == $share and
        .owner.id == "remote.example"' "$work/answer" > /dev/null || { result=$(cat "$work/answer"); return 1; }
    broker_ctl vgpus list --json > "$work/answer"
    jq -e 'all(.name != "default")' "$work/answer" > /dev/null || { result="the vGPU default is still there"; return 1; }
    result="$(($1 >> 20)) MiB, share $2"
}

check_user() {
    install -m 600 "$work/files/password" "$work/machines/gpu1.example/root/password"
    on gpu1.example "HOME=/tmp HAWSERCTL_URL=https://gpu1.example:7655 HAWSERCTL_CA_FILE=/etc/hawser/ca.pem \
        hawserctl --user alice --password-file /root/password who" > "$work/answer" ||
        { result=$(cat "$work/answer"); return 1; }
    grep -q operator "$work/answer" || { result=$(cat "$work/answer"); return 1; }
}

# Runs programs on the guest $1.
check_program() {
    local program programs=$root/appliance/programs/target/bin
    tar -C "$programs" -cf "$work/machines/$1/root/programs.tar" drv_vector_add drv_large_copies ptx
    on "$1" tar -C /root -xf /root/programs.tar
    for program in drv_vector_add drv_large_copies; do
        on "$1" "HAWSER_STATS=/root/stats HAWSER_CONNECT_TIMEOUT_MS=600000 timeout 900 /root/$program" > "$work/answer" 2>&1 &&
            grep -q "^PASS $program" "$work/answer" || { result=$(cat "$work/answer"); return 1; }
    done
    on "$1" cat /root/stats > "$work/stats"
    jq -se 'map(.carrier) == ["tls", "tls"]' "$work/stats" > /dev/null || { result=$(cat "$work/stats"); return 1; }
    result="$(sed -n 's/^PASS //p' "$work/answer"), over TLS, with the libraries found by the linker"
}

# The run with other values must have changed only $2 on machine $1.
changed_on() {
    local changes
    changes=$(awk -v name="changed: [$1]" '/^TASK/ { task = $0 } index($0, name) == 1 { print task }' \
        "$work/change.log" | sed 's/.* : \(.*\)\].*/\1/' | paste -sd';')
    [ "$changes" = "$2" ] || { result="changed on $1: $changes"; return 1; }
}

# Runs with other values and a newer package in the repository: both are applied, the broker restarts, and vGPU and token stay.
check_change() {
    local before token guest
    before=$(on gpu1.example systemctl show -p MainPID hawser-broker)
    token=$(cat "$work/tokens/research1.token")
    write_inventory 256M 70 2
    in_order publish_newer_apt
    in_order publish_newer_rpm
    # Makes the package lists two days old.
    on remote.example touch -d "'2 days ago'" /var/lib/apt/lists
    on el9.example "find /var/cache/dnf -type f -exec touch -d '2 days ago' {} +"
    play change
    has_line gpu1.example /etc/hawser/broker.conf HAWSER_WORKER_POOL_SIZE=2
    [ "$(on gpu1.example systemctl show -p MainPID hawser-broker)" != "$before" ] ||
        { result="the broker was not restarted"; return 1; }
    check_vgpu $((256 << 20)) 70
    [ "$(cat "$work/tokens/research1.token")" = "$token" ] || { result="the token has changed"; return 1; }
    changed_on remote.example "Fetch package lists that are older than a day;Install from the repository"
    changed_on el9.example "Write the settings;Install from the repository"
    for guest in remote el9; do
        grep -qxF "hawser-guest $newer" <<< "$(installed $guest.example)" || { result=$(installed $guest.example); return 1; }
    done
    result+="; hawser-guest $newer by apt and dnf"
}

# Without systemd an operator starts the broker, with the written settings.
check_started_by_hand() {
    on "$1" "runuser -u hawser -- sh -c \
        'set -a; . /etc/hawser/broker.conf; HAWSER_STATE_DIR=/tmp/state exec hawser-broker' \
        > /tmp/broker.log 2>&1 < /dev/null & echo started" > "$work/answer"
    await_quietly 900 on "$1" test -s /tmp/state/endpoints.json ||
        { result+=": $(on "$1" tail -n 5 /tmp/broker.log)"; return 1; }
    on "$1" "HAWSERCTL_STATE_DIR=/tmp/state hawserctl broker --json" > "$work/answer"
    result="the broker serves with the written settings"
}

# The logs of a broker with a journal and of one without.
check_logs() {
    await_quietly 900 on el9.example grep -q "is ready" /tmp/broker.log
    on gpu1.example journalctl -u hawser-broker --no-pager -o cat > "$work/gpu1-broker.log"
    on el9.example cat /tmp/broker.log > "$work/el9-broker.log"
    local log
    for log in gpu1 el9; do
        grep -q 'is ready' "$work/$log-broker.log" || { result="the log of $log is not a broker's"; return 1; }
        result=$(no_defects "$work/$log-broker.log") || return 1
    done
}
