# shellcheck shell=bash disable=SC2034,SC2154 # variables of images/rdma-test
# The steps of the lane `rdma`. Sourced by images/rdma-test.

all_steps=(programs shows kills loss fabric sixteen idle cuts)

is_emulated() { [ "${vm_accelerator[1]}" != kvm ]; }

# Sets `steps` to those of --steps in their order, or to the default.
choose_steps() {
    local wanted=" ${steps[*]} " name
    if [ "$wanted" = "  " ]; then
        wanted=" all "
        ! is_emulated || wanted=" programs shows cuts "
    fi
    steps=()
    for name in "${all_steps[@]}"; do
        [[ $wanted != *" $name "* && $wanted != *" all "* ]] || steps+=("$name")
    done
}

# Sets `programs` to those of --programs, of all, or to the default: each session starts a worker, which takes seconds under emulation.
choose_programs() {
    local file name
    programs=(drv_vector_add drv_large_copies drv_pageable_copies drv_threads drv_callbacks drv_streams_events drv_graphs drv_printf
        drv_errors vector_add matrix_mul pinned_copies streams_events managed_memory)
    case $chosen in
        '') ! is_emulated || programs=(drv_vector_add drv_large_copies) ;;
        all)
            programs=()
            for file in "$bin"/*; do
                name=${file##*/}
                case $name in
                    hold | churn | tenant | stranger | random_calls | static_stripped | hawser_benchmark) ;; # these do not check a result by themselves
                    *) [ ! -f "$file" ] || programs+=("$name") ;;
                esac
            done
            ;;
        *) IFS=, read -r -a programs <<< "$chosen" ;;
    esac
    [ -x "$bin/vector_add" ] || say "$me: nvcc not found when building: only programs of the Driver API run"
    for name in "${!programs[@]}"; do
        [ -x "$bin/${programs[name]}" ] || unset "programs[name]"
    done
}

# Chooses the carrier: rdma if this broker knows its settings.
choose_carrier() {
    [ -z "$carrier" ] || return 0
    carrier=tcp
    ! compgen -G "$work/tree.broker/opt/hawser/lib/worker/libhws_rdma.so*" > /dev/null || carrier=rdma
}

start_broker_inside() {
    local flags=()
    [ "$carrier" != rdma ] || flags=(-Dhawser.rdma.enabled=true -Dhawser.rdma.retry="${retry_s}s" -Dhawser.vgpus.default.rdma=true)
    in_broker 560 "broker_start ${flags[*]}"
    grep -q '[.]' "$work/answer" || { result=$(cat "$work/answer"); return 1; }
    environment="export HAWSER_CARRIER=$carrier HAWSER_BROKER=$broker_address:7654 HAWSER_TOKEN=$(tail -n 1 "$work/answer") HAWSER_RDMA_RETRY_MS=$((retry_s * 1000))"
    result="software GPU"
}
retry_s=20

# Runs program $1 in the guest; it must pass over the carrier.
run_program() {
    local status=0
    serial_run guest 300 "$environment; counted $*" || status=$?
    if [ $status = 77 ]; then
        result="unsupported: $(tail -n 1 "$work/answer")"
        return
    fi
    program_passed "$work/answer" "$1" "$carrier" "$status"
}

# Whether the broker's sessions satisfy jq's filter and options $1...; otherwise `result` is the answer.
sessions_are() {
    serial_run broker 120 rest api/v1/sessions || { result=$(cat "$work/answer"); return 1; }
    result=$(cat "$work/answer")
    jq -e "$@" <<< "$result" > /dev/null && result=''
}
is_idle() { sessions_are 'length == 0'; }

# Starts `hold` as number $1 with the further arguments, and waits until the broker shows its session.
hold() {
    in_guest 300 "$environment; hold_start $*" && await 60 sessions_are --arg carrier "$carrier" 'length == 1 and all(.state == "running" and .carrier == $carrier)'
}
# Waits for the end of `hold` number $1, within $2 seconds; it must report a lost device. Sets `lost` to its error.
lose_hold() {
    local status=0
    in_guest $(($2 + 30)) "await $2 test -s /tmp/hold.$1.status || { echo it continues; cat /tmp/hold.$1.out; false; }"
    serial_run guest 60 "hold_end $1" || status=$?
    [ $status = 3 ] && grep -q '^ERROR ' "$work/answer" || { result="status $status: $(cat "$work/answer")"; return 1; }
    lost=$(sed -n 's/^ERROR \([0-9]* [A-Z_0-9]*\).*/\1/p' "$work/answer")
}

rest_shows() {
    local shown
    hold 1 --idle 1
    serial_run broker 120 rest api/v1/sessions
    shown=$(jq -r '.[0] | "\(.program) of \(.host): carrier \(.carrier)"' "$work/answer")
    in_guest 120 hold_end 1
    await 60 is_idle
    result=$shown
}

# After an end by force: no session, no worker of it, no queue pair on either side.
nothing_of() {
    await 60 is_idle
    in_broker 90 "await 60 not kill -0 $1 2> /dev/null"
    in_broker 90 "await 60 no_queue_pairs"
    in_guest 90 "await 60 no_queue_pairs"
}
# Starts `hold` as number $1, and sets `worker` to the process of its worker.
hold_and_find_worker() {
    hold "$@"
    serial_run broker 60 rest api/v1/sessions
    worker=$(jq '.[0].workerPid' "$work/answer")
    [ "$carrier" = rdma ] || return 0
    # Else the absence of queue pairs afterwards would prove nothing.
    in_guest 30 "not no_queue_pairs"
    in_broker 30 "not no_queue_pairs"
}

kill_program() {
    local start took
    hold_and_find_worker 2
    in_guest 60 'kill -9 $(pidof hold | tr " " "\n" | sort -n | head -n 1)'
    start=$EPOCHREALTIME
    await 60 is_idle
    took=$(seconds_since "$start")
    serial_run guest 60 hold_end 2 || true
    nothing_of "$worker"
    result="the broker ended its session within $took s"
}

killed_copies() {
    local delay
    for delay in 2 3 4 5; do
        in_guest 120 "$environment; kill_during drv_large_copies $delay --size 256"
    done
    await 60 is_idle
    run_program drv_vector_add
    in_guest 90 "await 60 no_queue_pairs"
    result="4 killed; afterwards drv_vector_add passed"
}

kill_worker() {
    local start took
    hold_and_find_worker 3
    in_broker 60 "kill -9 $worker"
    start=$EPOCHREALTIME
    lose_hold 3 30
    took=$(seconds_since "$start")
    nothing_of "$worker"
    result="$lost within $took s"
}

kill_broker_inside() {
    local start took
    hold_and_find_worker 7
    in_broker 60 "no_defects /root/state.log"
    in_broker 60 'kill -9 $(cat /root/broker.pid)'
    start=$EPOCHREALTIME
    lose_hold 7 60
    took=$(seconds_since "$start")
    in_broker 90 "await 60 not pidof java"
    in_broker 90 "await 60 no_queue_pairs"
    in_guest 90 "await 60 no_queue_pairs"
    start_broker_inside
    run_program drv_vector_add
    result="$lost within $took s; no worker stayed; a new broker served drv_vector_add"
}

sixteen() {
    local passed
    in_guest 900 "$environment; at_once drv_vector_add 16"
    passed=$(tail -n 1 "$work/answer")
    await 120 is_idle
    result="16 of drv_vector_add: $passed"
}

# Whether process $2 in machine $1 uses less than 1 % of a processor with KVM, and 20 % under emulation, in 10 s. Sets `used`. The worker's
# session thread wakes 10 times a second, which was measured as 5 % under emulation. A thread that does not sleep takes 100 %.
is_quiet() {
    serial_expect "$1" 60 "ticks_in 10 $2"
    used=$(paste -sd' ' "$work/answer")
    [ "${used##* }" -lt "$(is_emulated && echo 200 || echo 10)" ] || { result="busiest threads and sum, in ticks of 10 ms: $used"; return 1; }
}

# Both sides of a session without calls come to rest, within a minute: Java compiles for a while after a session's begin.
idle() {
    local used program_used
    hold_and_find_worker 4 --idle 1
    await 60 is_quiet guest '$(pidof hold)'
    program_used=$used
    await 60 is_quiet broker "$worker"
    in_guest 120 hold_end 4
    await 60 is_idle
    result="ticks of 10 ms in 10 s: program $program_used, worker $used"
}

# hawser-fabric of the distribution between the machines, with small copies.
fabric() {
    in_broker 90 "bash /opt/hawser/bin/hawser-fabric serve --limit 900 > /tmp/serve 2>&1 & echo \$! > /tmp/serve.pid; await 60 grep -q 'serves at' /tmp/serve"
    in_guest 600 "$environment; bash /opt/bin/hawser-fabric measure $broker_address --max $(is_emulated && echo 1 || echo 16) --limit 250 --json /tmp/fabric.json"
    sed 's/^/    /' "$work/answer"
    expect "each line has the label" not grep -v -e '^SoftRoCE: ' -e '^hawser-fabric: SoftRoCE: ' "$work/answer"
    in_guest 30 "cat /tmp/fabric.json"
    jq -e '.label == "SoftRoCE" and (.figures | length == 5 and all(.value > 0) and all(.reached == "" or .reached == "not judged"))' \
        "$work/answer" > /dev/null
    fabric_result=$(jq -r '.figures | to_entries | map("\(.key) \(.value.value) \(.value.unit)") | join(", ")' "$work/answer")
    in_broker 60 'kill $(cat /tmp/serve.pid); await 30 not pidof ib_write_bw ib_write_lat'
    await 60 is_idle
    result="SoftRoCE: $fabric_result"
}

# Loses 1 % of the packets in both directions.
lossy() {
    local result_of
    in_guest 30 "/opt/bin/tc qdisc add dev eth0 root netem loss 1%"
    in_broker 30 "/opt/bin/tc qdisc add dev eth0 root netem loss 1%"
    run_program drv_large_copies --size 2
    result_of=$result
    in_guest 30 "/opt/bin/tc -s qdisc show dev eth0 | grep -o 'dropped [1-9][0-9]*'"
    result="$result_of; the guest $(cat "$work/answer") packets"
    serial_expect guest 30 "/opt/bin/tc qdisc del dev eth0 root"
    serial_expect broker 30 "/opt/bin/tc qdisc del dev eth0 root"
}

# Pulls the cable when no worker starts: a worker that starts without a link has no RDMA until its end, and its session goes by TCP or fails.
pull_cable() {
    await 300 pool_is_full
    cable off
}
pool_is_full() {
    serial_run broker 120 rest api/v1/broker || { result=$(cat "$work/answer"); return 1; }
    jq -e '.pool | .starting == 0 and .ready >= .size' "$work/answer" > /dev/null || { result=$(jq -c .pool "$work/answer"); return 1; }
}

short_cut() {
    local passed
    hold 5
    pull_cable
    in_guest 60 "await 10 test \$(cat /sys/class/net/eth0/carrier) = 0; sleep 3"
    cable on
    in_guest 200 hold_end 5
    passed=$(sed -n 's/^PASS hold: //p' "$work/answer")
    await 60 is_idle
    result="$passed, 3 s without the cable"
}

long_cut() {
    local start took
    hold 6
    pull_cable
    start=$EPOCHREALTIME
    # TCP ends by its own limits, which are longer than those of the carrier rdma.
    lose_hold 6 120
    took=$(seconds_since "$start")
    cable on
    await 120 is_idle
    in_guest 60 "await 60 ping -c 1 -w 2 $broker_address"
    run_program drv_vector_add
    result="$lost after $took s; afterwards drv_vector_add passed"
}

nothing_left() {
    await 60 is_idle
    in_broker 60 "no_defects /root/state.log"
}

# --- The steps by their names in --steps.

steps_programs() {
    for name in "${programs[@]}"; do
        step guest "$name passes over $carrier" run_program "$name"
    done
}
steps_shows() { step broker "REST shows the session with carrier $carrier" rest_shows; }
steps_kills() {
    step guest "kill -9 of a program ends its session" kill_program
    step guest "programs killed during copies leave nothing" killed_copies
    step broker "kill -9 of a worker gives the program an error at once" kill_worker
    step broker "kill -9 of the broker gives the program an error, and ends all workers" kill_broker_inside
}
steps_loss() { step both "a program passes while 1 % of the packets are lost" lossy; }
steps_fabric() {
    if [ "$carrier" != rdma ]; then
        step_skipped both "hawser-fabric measures over SoftRoCE" "the carrier is $carrier"
    elif [ -e "$work/tree.broker/opt/hawser/bin/hawser-fabric" ]; then
        step both "hawser-fabric measures over SoftRoCE" fabric
    else
        step_skipped both "hawser-fabric measures over SoftRoCE" "the archive has no hawser-fabric"
    fi
}
steps_sixteen() { step guest "16 processes compute at once" sixteen; }
steps_idle() { step both "an idle session uses no processor" idle; }
steps_cuts() {
    step both "a short cut of the link goes unnoticed" short_cut
    step both "a long cut of the link ends the session with an error" long_cut
}
