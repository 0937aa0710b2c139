# shellcheck shell=bash disable=SC2016,SC2034,SC2154 # scripts of jobs; variables of images/slurm-test
# Many jobs of mixed kinds at once, while a node crashes and a broker is killed. Sourced by images/slurm-test.

# The kinds of twenty jobs; the array is five of them.
many_kinds=(plain two gres fails cancelled waiting requeued slow greedy none array pair wish none plain plain)

declare -A kind_of=()      # by job; an array's tasks have its kind
declare -A state_of=()     # by job, for each task of an array by its own id
declare -A acted_on=()     # holders that were cancelled or requeued
declare -A ended_before=() # jobs that had ended when the broker was killed
declare -A may_be_lost=()  # jobs whose vGPU was at the killed broker
many_ids='' many_total=0 many_ended=0 many_node='' many_broker='' many_sweeper='' many_swept=0

submit_kind() {
    case $1 in
        plain) submit ann "$compute" --licenses=hawser:1 ;;
        two) submit bob "$compute" --licenses=hawser:2 --ntasks=2 ;;
        gres) submit ann "$compute" --gres=vgpu:quarter:1 ;;
        pair) submit bob "$compute" --gres=vgpu:quarter:2 --ntasks=2 ;;
        fails) submit ann "$look; exit 3" --licenses=hawser:1 ;;
        cancelled) submit bob "$hold" --licenses=hawser:1 ;;
        waiting) submit ann "$compute" --licenses=hawser:1 --begin=now+1hour && on ctl scancel "$job" ;;
        requeued)
            submit ann 'echo "run ${SLURM_RESTART_COUNT:-0}"; if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then '"$hold"'; else '"$compute"'; fi' \
                --licenses=hawser:1
            ;;
        slow) submit bob "$hold" --licenses=hawser:1 --time=1 ;;
        greedy) submit ann "$compute; perl -e '\$x = \"x\" x 300000000; sleep 300'" --licenses=hawser:1 --mem=100M ;;
        none) submit ann 'echo plain:${HAWSER_BROKER:-none}' ;;
        wish) submit ann "$compute" --licenses=hawser:1 --comment=hawser:share=1 ;;
        array) submit bob "if [ \$((SLURM_ARRAY_TASK_ID % 2)) = 0 ]; then $compute; else $look; fi" --licenses=hawser:1 --array=0-4 ;;
    esac
}

submit_many() {
    local kind
    while [ $many_total -lt "$job_count" ]; do
        for kind in "${many_kinds[@]}"; do
            submit_kind "$kind"
            kind_of[$job]=$kind many_ids+=${many_ids:+,}$job
            if [ "$kind" = array ]; then many_total=$((many_total + 5)); else many_total=$((many_total + 1)); fi
        done
    done
    result="$many_total jobs, $((many_total / 4)) of them in arrays"
}

# Reads the states of all jobs, and counts those that have ended.
read_states() {
    local id raw state
    on ctl sacct --noheader --parsable2 --allocations --jobs="$many_ids" --format=JobID,JobIDRaw,State > "$work/states" 2> "$work/output" ||
        { result=$(cat "$work/output"); return 1; }
    many_ended=0
    while IFS='|' read -r id raw state; do
        [[ $id != *\[* ]] || continue # tasks that wait
        kind_of[$raw]=${kind_of[${id%_*}]} state_of[$raw]=${state%% *}
        ! is_end "${state%% *}" || many_ended=$((many_ended + 1))
    done < "$work/states"
    result="$many_ended of $many_total jobs have ended"
    [ "$many_ended" -ge "$many_total" ]
}

# Whether a job in the state $1 does not run again. After the failure of its node it does.
is_end() { [[ $1 =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|OUT_OF_MEMORY)$ ]]; }

# Cancels and requeues the jobs that hold a vGPU. A job may end meanwhile, with its broker.
act_on_holders() {
    local id
    for id in "${!state_of[@]}"; do
        [ "${state_of[$id]}" = RUNNING ] && [ -z "${acted_on[$id]:-}" ] || continue
        case ${kind_of[$id]} in
            cancelled) [[ $(output_of "$id") != *READY* ]] || { on ctl scancel "$id" || true; acted_on[$id]=1; } ;;
            requeued) [[ $(output_of "$id") != *READY* ]] || { on ctl scontrol requeue "$id" || true; acted_on[$id]=1; } ;;
        esac
    done
}

# Lets node2 crash once it has jobs with vGPUs and a quarter of the jobs has ended, and starts it again when slurmctld has noticed it.
crash_node() {
    case $many_node in
        '')
            [ $((many_ended * 4)) -ge "$many_total" ] || return 0
            on ctl squeue --noheader --states=RUNNING --nodelist=node2 --format='%A %W' > "$work/output" 2>&1 || return 0
            grep -q ' hawser' "$work/output" || return 0
            kill -KILL "${machine_pid[node2]}"
            many_node="crashed with $(grep -c . "$work/output") jobs"
            say "$me: after $SECONDS s: node2 $many_node"
            ;;
        crashed*)
            [[ $(on ctl sinfo --noheader --nodes=node2 --format=%t) = down* ]] || return 0
            start_node node2 10.78.0.112
            say "$me: after $SECONDS s: node2 is back"
            many_node=${many_node#crashed }
            ;;
    esac
}

# Kills the last broker once vGPUs of it are in use and half of the jobs have ended, and starts it again when the pool has noticed it.
kill_a_broker() {
    local id
    case $many_broker in
        '')
            [ $((many_ended * 2)) -ge "$many_total" ] && [[ -n $many_node && $many_node != crashed* ]] || return 0
            [ "$(of_broker "$brokers" "sessions$(broker_filter "$brokers")" | jq length)" -gt 0 ] || return 0
            for id in "${!state_of[@]}"; do
                ! is_end "${state_of[$id]}" || ended_before[$id]=1
            done
            kill_lane_broker "$brokers"
            many_broker=killed
            say "$me: after $SECONDS s: broker $brokers is killed"
            ;;
        killed)
            [ "$alone" = 1 ] || is_silent 1 "$brokers" || return 0
            made_at "$brokers" > "$work/output"
            while read -r id; do
                [ -n "${ended_before[$id]:-}" ] || may_be_lost[$id]=1
            done < "$work/output"
            start_lane_broker "$brokers"
            say "$me: after $SECONDS s: broker $brokers is back"
            many_broker=back
            ;;
    esac
}

# Prints the jobs whose vGPUs were made at broker $1, by the logs.
made_at() {
    local logs=("$work"/broker*.log) at=" broker=b$1\\b"
    [ "$alone" = 0 ] || logs=("$work/broker$1.log") at=''
    sed -n -E "s/.*vGPU slurm-([0-9]+)-[0-9]+ made:.*$at.*/\\1/p" "${logs[@]}" | sort -u
}

# Runs the sweeps now and then beside the jobs, as the timers do. They must not take a vGPU from a job that runs.
sweep_beside() {
    local node
    [ $((SECONDS - many_swept)) -ge 20 ] || return 0
    [ -z "$many_sweeper" ] || ! kill -0 "$many_sweeper" 2> /dev/null || return 0
    many_swept=$SECONDS
    (
        on ctl runuser -u slurm -- hawser-slurm sweep || true
        on node1 hawser-slurm sweep-node || true
    ) >> "$work/sweeps.log" 2>&1 < /dev/null &
    many_sweeper=$!
}

check_many() {
    local id limit=$((SECONDS + 300 + many_total * 6)) failures=0 told=$SECONDS
    many_swept=$SECONDS
    until read_states; do
        [ $SECONDS -lt $limit ] || { result="not in time: $result: $(grep -v -E 'COMPLETED|CANCELLED' "$work/states" | head -n 20)"; return 1; }
        act_on_holders
        crash_node
        kill_a_broker
        sweep_beside
        [ $((SECONDS - told)) -lt 60 ] || { told=$SECONDS; say "$me: after $SECONDS s: $many_ended of $many_total jobs have ended"; }
        sleep 2 # between two looks at Slurm
    done
    [ -z "$many_sweeper" ] || wait "$many_sweeper" || true # the next sweep repeats what a broker that was away has not done
    [[ -n $many_node && $many_node != crashed* ]] || { result="node2 did not crash and come back: $many_node"; return 1; }
    [ "$many_broker" = back ] || { result="broker 2 was not killed and started: $many_broker"; return 1; }
    : > "$work/failures"
    for id in "${!state_of[@]}"; do
        is_as_expected "$id" >> "$work/failures" || failures=$((failures + 1))
    done
    [ $failures = 0 ] || { result="$failures jobs: $(head -c 4000 "$work/failures")"; return 1; }
    result="node2: $many_node; ${#may_be_lost[@]} vGPUs at the killed broker; $(cut -d'|' -f3 "$work/states" | cut -d' ' -f1 | sort | uniq -c | xargs)"
}

# Whether job $1 has ended as its kind must; else prints why not.
is_as_expected() {
    local state=COMPLETED text passed=1 wanted='' id=$1 kind=${kind_of[$1]}
    text=$(output_of "$id")
    case $kind in
        two | pair) passed=2 ;;
        fails) state=FAILED ;;
        cancelled) state=CANCELLED passed=0 ;;
        waiting) state=CANCELLED passed=0 ;;
        requeued) wanted='run [1-9]' ;;
        slow) state=TIMEOUT passed=0 ;;
        greedy) state='OUT_OF_MEMORY|FAILED' wanted='exceeded memory limit' ;; # OUT_OF_MEMORY needs control groups
        none) passed=0 wanted='plain:none' ;;
    esac
    if [ "${state_of[$id]}" = FAILED ] && [ -n "${may_be_lost[$id]:-}" ]; then
        return 0 # its program has lost its GPU with the broker
    fi
    if ! [[ ${state_of[$id]} =~ ^($state)$ ]] || [ "$(passes "$text")" -lt $passed ] || { [ -n "$wanted" ] && ! [[ $text =~ $wanted ]]; } ||
            { [ "$kind" = waiting ] && [ -n "$text" ]; }; then
        printf 'job %s of kind %s ended as %s, expected %s: %s; %s\n' "$id" "$kind" "${state_of[$id]}" "$state" \
            "${text:0:600}" "$(field_of "$id" AdminComment)"
        return 1
    fi
}

# After these jobs the hooks and the sweeps leave nothing.
check_many_gone() {
    await 180 is_swept
    result=''
}
is_swept() {
    on ctl runuser -u slurm -- hawser-slurm sweep >> "$work/sweeps.log" 2>&1 || { result=$(tail -n 3 "$work/sweeps.log"); return 1; }
    has_no_files && vgpus_are_only_default
}
