# shellcheck shell=bash disable=SC2034,SC2154 # variables of hawserd-test
# The group `tcp` of the lane `hawserd`: vGPUs over TCP, saved and migrated domains. Sourced by hawserd-test.

tcp_group() {
    uuids net shm
    define_domain net pc "" "$(network)"
    step tcp "hawserctl attach --transport tcp changes the definition" ctl attach net --config --transport tcp
    step tcp "the domain starts" boot net
    step tcp "the guest has its settings by fw_cfg, and a program passes over TCP" program_tcp net
    step tcp "save ends the vGPU" saved net
    step tcp "restore brings the vGPU back, and a program passes" restored net
    step tcp "libvirtd and hawserd of a second host start" second_host
    define_domain shm pc "$(vgpu)" "$(device shm)"
    step tcp "libvirt refuses to migrate a domain with a region" not_migrated shm
    step tcp "a live migration keeps the open session and the vGPU" migrated net
    step tcp "a stop at the second host ends the vGPU" stopped_there net
    step tcp "attach and detach work for a running domain" attached_live net
    v undefine net
    local agent_step="QEMU's guest agent gives a running guest its settings"
    if [ -n "$agent" ]; then
        uuids agent
        step tcp "$agent_step" attached_by_agent agent
    else
        step_skipped tcp "$agent_step" "qemu-ga is missing: install qemu-guest-agent"
    fi
}

program_tcp() {
    serial_expect "$1" 300 "ip link set eth0 up; ip addr add 10.77.0.9/24 dev eth0 2>/dev/null; mkdir -p /etc/hawser; \
        cp /sys/firmware/qemu_fw_cfg/by_name/opt/io.hawser/guest.toml/raw /etc/hawser/guest.toml" && has_vgpu "$1" && program "$1" tcp
}

saved() { quietly v save "$1" "$work/$1.saved" && has_nothing "$1"; }

# The guest still has the settings of its boot; QEMU now shows it new ones.
restored() { quietly v restore "$work/$1.saved" && program_tcp "$1"; }

second_host() {
    libvirt_host two $host_two
    libvirt_hook two
    on two libvirt_start
    on two start_hawserd
}

migrate() {
    quietly v migrate --live --persistent "$1" "qemu+unix:///system?socket=/proc/${libvirt_holder[two]}/root/run/libvirt/libvirt-sock" \
        tcp://127.0.0.1
}

not_migrated() {
    local said
    start "$1" && has_all "$1" || return 1
    migrate "$1" && { result="it was migrated"; return 1; }
    said=$(tail -n 1 "$work/output")
    has_all "$1" && v destroy "$1" && has_nothing "$1" && v undefine "$1" && result=$said
}

migrated() {
    hold "$1" && migrate "$1" || return 1
    # The owner is checked first: from then on the vGPU belongs to the second host, and the first cannot end it.
    await 300 has_vgpu "$1" $host_two && let_go "$1" && program "$1" tcp && on two has_status "$1" ready &&
        await 300 has_vgpu "$1" $host_two && result="the session continued"
}

stopped_there() { on two v destroy "$1" && await 300 not has_vgpu "$1" $host_two && on two v undefine "$1"; }

# Without a guest agent the settings cannot reach the running guest; hawserctl prints their file.
attached_live() {
    local said
    define_domain "$1" pc
    start "$1" && ctl attach "$1" --live --transport tcp || return 1
    said=$(tr '\n' ' ' < "$work/out")
    await 300 has_status "$1" ready && has_vgpu "$1" && [ -s "/run/hawser/state/guests/${uuid_of[$1]}.toml" ] &&
        ctl detach "$1" --live && has_nothing "$1" && v destroy "$1" && result=$said
}

agent_answers() { quietly v qemu-agent-command "$1" --timeout 60 '{"execute":"guest-ping"}'; }

attached_by_agent() {
    local said
    define_domain "$1" pc "" "$(network)<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>"
    boot "$1" && serial_expect "$1" 300 "ip link set eth0 up; ip addr add 10.77.0.10/24 dev eth0; mkdir -p /run/hawser; \
        for port in /sys/class/virtio-ports/*; do grep -q guest_agent \$port/name && port=\${port##*/} && break; done; \
        (qemu-ga -m virtio-serial -p /dev/\$port -t /tmp > /tmp/agent.out 2>&1 &)" || return 1
    await 300 agent_answers "$1" || { serial_run "$1" 60 "cat /tmp/agent.out"; result="$result: $(cat "$work/answer")"; return 1; }
    ctl attach "$1" --live --transport tcp && has_vgpu "$1" && program "$1" tcp || { result="$result; $(cat "$work/out")"; return 1; }
    said=$result
    await 300 not sessions_of "$1" && ctl detach "$1" --live && has_nothing "$1" && v destroy "$1" && v undefine "$1" && result=$said
}
