# shellcheck shell=bash disable=SC2034,SC2154 # variables of hawserd-test
# The groups `refused` and `boot` of the lane `hawserd`: refused starts, and domains with a vGPU from their start. Sourced by hawserd-test.

refused_group() {
    uuids r1 r2 r3 r4 r5 r6 other plain
    define_domain r1 pc "$(vgpu "colour='red'")" "$(device r1)"
    step refused "a start with an unknown attribute in the metadata is refused" refused r1 colour
    define_domain r2 pc "$(vgpu "memory='a lot'")" "$(device r2)"
    step refused "a start with an invalid value in the metadata is refused" refused r2 memory
    define_domain r3 pc "$(vgpu)" "$(device r3 other)"
    step refused "a start with the name of another domain's region is refused" refused r3 "hawser-${uuid_of[other]}"
    define_domain r4 pc "$(vgpu "name='default'")" "$(device r4)"
    step refused "a start with the name of another owner's vGPU is refused" refused r4 default
    define_domain r5 pc "$(vgpu "memory='999999G'")" "$(device r5)"
    step refused "a start with more memory than the GPU has is refused" refused r5 memory
    define_domain r6 pc "$(vgpu)" "$(device r6)"
    step refused "a start without hawserd is refused" refused_without_hawserd r6
    stop_broker
    rm -f "$work/state/endpoints.json"
    step refused "a start without a broker is refused" refused_without_broker r6
    define_domain r1 pc "$(vgpu "required='no'")" "$(device r1)"
    step refused "a domain with required='no' starts without a broker and waits" starts_waiting r1
    step refused "the waiting domain gets its share after the broker's start" gets_share r1
    v undefine r2
}

# The start of domain $1 must fail with the text $2 from virsh.
not_started() {
    if v start "$1" > "$work/out" 2>&1; then
        v destroy "$1"
        result="it has started"
        return 1
    fi
    result=$(tr '\n' ' ' < "$work/out")
    result=${result##*exit status 1: }
    grep -q -i -e "$2" "$work/out"
}

# The start of domain $1 must fail with the text $2 from virsh, and leave nothing behind.
refused() {
    local said
    not_started "$1" "$2" || return 1
    said=$result
    has_nothing "$1" && result=$said
}

refused_without_hawserd() {
    local said
    hawserd_kill
    refused "$1" hawserd
    said=$result
    define_domain plain pc
    start plain || { result="a domain without a vGPU also fails to start: $result"; return 1; }
    v destroy plain
    start_hawserd
    result=$said
}

refused_without_broker() { not_started "$1" broker && ! has_file "$1"; }

starts_waiting() { start "$1" && await 300 has_status "$1" waiting && result=$(v metadata "$1" urn:hawser:status:1 | grep -o "reason=.*"); }

gets_share() {
    local said
    broker
    has_all "$1" && serial_await_boot "$1" && program "$1" || return 1
    said=$result
    v destroy "$1"
    has_nothing "$1" && result=$said
}

boot_group() {
    uuids alpha beta
    define_domain alpha pc "$(vgpu "memory='256M' share='50'")" "$(device alpha)"
    define_domain beta pc-q35-7.2 "" "$(device beta)"
    step boot "a pc with metadata and a q35 with only the device start" boot alpha beta
    step boot "both domains have vGPU, region, file and status" both_have_all
    step boot "a program passes in the first guest" program alpha
    step boot "a program passes in the second guest" program beta
    step boot "programs pass in both guests at once" both_at_once
    step boot "a reboot inside the guest ends its session and keeps the vGPU" reboot_inside alpha
    step boot "libvirt refuses to save the domain, and nothing changes" not_saved alpha
    step boot "an undefined domain keeps its vGPU while it runs" undefine_running beta
    step boot "a renamed domain has its vGPU at the next start" renamed alpha
}

both_have_all() {
    has_all alpha && has_all beta || return 1
    rest_has vgpus 'any(.name == "alpha" and .computeShare == 50)'
}

both_at_once() { hold alpha && program beta && let_go alpha; }

reboot_inside() {
    hold "$1" && serial_send "$1" reboot -f && serial_await_boot "$1" && program "$1" && has_all "$1" && await 300 not sessions_of "$1" &&
        result="no session of the time before the reboot is left"
}

not_saved() {
    local said
    v save "$1" "$work/saved" > "$work/out" 2>&1 && { result="it was saved"; return 1; }
    said=$(tr '\n' ' ' < "$work/out")
    program "$1" && has_all "$1" && result=$said
}

undefine_running() {
    v undefine "$1" > "$work/out" 2>&1 && program "$1" && has_all "$1" || return 1
    v destroy "$1"
    has_nothing "$1"
}

renamed() {
    v destroy "$1" && has_nothing "$1" && v domrename "$1" gamma > "$work/out" 2>&1 || return 1
    uuid_of[gamma]=${uuid_of[$1]}
    v start gamma && has_all gamma && rest_has vgpus 'any(.name == "gamma")' && v destroy gamma && has_nothing gamma && v undefine gamma
}
