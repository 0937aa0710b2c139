# shellcheck shell=bash disable=SC2034,SC2154 # variables of hawser-slurm
# The brokers, and the vGPUs and tokens of the job `job`. Sourced by hawser-slurm.

# Prints the words of BROKERS without the guests' addresses: each the URL of a broker, or the URLs of a pool's brokers with commas.
brokers() { local broker; for broker in $BROKERS; do printf '%s\n' "${broker%%=*}"; done; }

# Asks the broker or the pool $1 by hawserctl with the arguments $2..., and sets `answer` to its output. When a broker of a pool does not
# answer, the next one is asked. The status is hawserctl's: 3 if none answers in time.
ask() {
    local urls i url status
    IFS=',' read -r -a urls <<< "$1"
    shift
    for ((i = 0; i < ${#urls[@]}; i++)); do
        # Jobs begin with different brokers, so that these share the work.
        url=${urls[(i + ${job:-0}) % ${#urls[@]}]}
        [[ $away != *" $url "* ]] || continue
        status=0
        answer=$(ctl "$url" "$@" 2>&1) || status=$?
        case $status in
            0) answer=$(sed '/^hawserctl: /d' <<< "$answer"); return 0 ;; # without its warnings
            3) ;;
            124 | 137) answer="no answer in time" ;;
            *) return $status ;;
        esac
        say "${job:+job $job: }$url: ${answer##*hawserctl: }"
        away+="$url " # each further question would cost the same time
    done
    answer="no broker answers: ${urls[*]}"
    return 3
}

# Makes the vGPU $1 of the job at the first of the brokers and pools $2... that has room for it, and notes it. `reason` explains a failure.
make_vgpu() {
    local name=$1 broker status
    shift
    for broker in "$@"; do
        note_vgpu "$broker" "$name" || { reason="the folder $state cannot be written"; return 1; }
        create "$broker" "$name" && return 0
        status=$? reason=${answer##*hawserctl: }
        # An earlier run of the job has left it: its labels name another restart.
        if [ $status = 1 ] && ask "$broker" vgpus show "$name" --fields labels.slurm.cluster,labels.slurm.job &&
            [ "$answer" = "$CLUSTER"$'\t'"$job" ]; then
            ask "$broker" vgpus delete "$name" --force --yes
            create "$broker" "$name" && return 0
            reason=${answer##*hawserctl: }
        fi
    done
    reason=${reason:-no broker is set}
    return 1
}

# Notes the vGPU $2 of the broker or pool $1, before it is made: after a crash the sweep finds a vGPU whose answer was lost.
note_vgpu() { grep -qxF "$1 $2" "$state/$job" 2> /dev/null || printf '%s %s\n' "$1" "$2" >> "$state/$job"; }

create() {
    ask "$1" vgpus create "$2" --if-absent --memory "$memory" --share "$share" --carriers tcp "$rdma" --expires "$(utc "$expires")" \
        --label "slurm.cluster=$CLUSTER" --label "slurm.job=$job" --label "slurm.restart=$restart" \
        --label "slurm.user=${SLURM_JOB_USER:-}" --fields name
}

# Deletes the vGPUs that the file of job $1 names, and adds their use to the job's accounting. Keeps the file, for the sweep, if a broker does
# not answer.
finish_job() {
    local job=$1 broker name status left='' problem use sums=(0 0 0 0 0) i count=0 value
    while read -r broker name; do
        use='' status=0
        ! ask "$broker" vgpus statistics "$name" --fields gpuTimeMs,peakBytes,bytesIn,bytesOut,kernels || use=$answer
        ask "$broker" vgpus delete "$name" --force --yes || status=$?
        case $status in
            0)
                count=$((count + 1)) i=0
                for value in $use; do
                    [[ $value =~ ^[0-9]+$ ]] && sums[i % 5]=$((sums[i % 5] + value))
                    i=$((i + 1))
                done
                ;;
            5) ;; # it exists no longer, or was never made at this broker
            *) left+="$broker $name"$'\n' problem=${answer##*hawserctl: } ;;
        esac
    done < "$state/$job"
    # A job that was requeued because of a failure has used nothing, and keeps the reason until it has started.
    if [ $count -gt 0 ] && { [ "${sums[*]}" != "0 0 0 0 0" ] || ! has_reason "$job"; }; then
        comment "$(printf 'hawser: vgpus=%d gpu_seconds=%d.%03d peak_bytes=%d bytes_in=%d bytes_out=%d kernels=%d' $count \
            $((sums[0] / 1000)) $((sums[0] % 1000)) "${sums[@]:1}")"
    fi
    if [ -n "$left" ]; then
        printf '%s' "$left" > "$state/.$job.new" && mv "$state/.$job.new" "$state/$job"
        say "job $job: a vGPU was not deleted, and the sweep tries again: $problem"
        return 1
    fi
    rm -f "$state/$job" "$state/.$job.new"
}

# Writes the text $1, in lower case since sacctmgr makes it so, where users and the accounting find it: scontrol show job and
# sacct --format=AdminComment.
comment() {
    slurm scontrol update "JobId=$job" "AdminComment=$1" > /dev/null 2>&1 ||
        slurm sacctmgr --immediate modify job where "jobid=$job" set "AdminComment=$1" > /dev/null 2>&1
}

# Whether the comment of job $1 is the reason why it did not start.
has_reason() {
    local text
    text=$(slurm scontrol --oneliner show job "$1" 2> /dev/null) || return 1
    [[ $text = *" AdminComment=hawser: "* && $text != *" AdminComment=hawser: vgpus="* ]]
}

# Makes the vGPUs of the node's own broker for the GRES.
make_local() {
    local size i
    for size in $TYPES; do
        [ "${size%%:*}" != "$gres_type" ] || break
        size=
    done
    [ -n "${size:-}" ] || { reason="TYPES of $settings lacks the type ${gres_type:-of a GRES without type}" is_final=1; return 1; }
    expires=$(expiry "$end")
    read_wishes "${size#*:}" || return 1
    for ((i = 0; i < gres_count; i++)); do
        make_vgpu "$CLUSTER-$job-$i" $local_broker || return 1
    done
}

# Prints the guests' addresses $2 of the brokers $1 in the order in which the job's programs must try them. Brokers that have not answered are the
# last: a program that has connected to a frozen broker asks no other one.
order_guests() {
    local urls guests i number first='' last=''
    IFS=',' read -r -a urls <<< "$1"
    IFS=',' read -r -a guests <<< "$2"
    [ ${#urls[@]} = ${#guests[@]} ] || { printf '%s\n' "$2"; return; }
    for ((i = 0; i < ${#urls[@]}; i++)); do
        number=$(((i + ${job:-0}) % ${#urls[@]})) # as `ask`
        if [[ $away = *" ${urls[number]} "* ]]; then last+=,${guests[number]}; else first+=,${guests[number]}; fi
    done
    first+=$last
    printf '%s\n' "${first:1}"
}

# Writes a token and the environment for each of the job's vGPUs into folder $1.
put_tokens() {
    local folder=$1 word broker names name i=0 found=0 count=$((gres_count > 0 ? gres_count : licenses)) guests
    local words=$BROKERS
    [ "$gres_count" = 0 ] || words=$local_broker
    for word in $words; do
        [ $found -lt $count ] || break
        broker=${word%%=*} guests=${word#*=}
        ask "$broker" vgpus list --label "slurm.cluster=$CLUSTER" --label "slurm.job=$job" --label "slurm.restart=$restart" \
            --fields name || { reason=${answer##*hawserctl: }; continue; }
        names=$answer
        guests=$(order_guests "$broker" "$guests")
        if [ "$broker" = $local_broker ]; then
            ask "$broker" broker --fields guestEndpoint || { reason=${answer##*hawserctl: }; return 1; }
            guests=$answer
        fi
        for name in $names; do
            i=${name##*-}
            [[ $name = "$CLUSTER-$job-$i" && $i =~ ^[0-9]+$ && ! -e $folder/token-$i ]] || continue
            # With --replace a repeated Prolog leaves no second token.
            ask "$broker" tokens create "$name" --replace --note "slurm ${SLURMD_NODENAME:-}" --out "$folder/token-$i" \
                --fields keyId || { reason=${answer##*hawserctl: }; return 1; }
            printf 'HAWSER_BROKER=%s\nHAWSER_TOKEN_FILE=%s\nHAWSER_CONNECT_TIMEOUT_MS=%d\n' "$guests" "$files/$job/token-$i" \
                $((CONNECT_LIMIT * 1000)) > "$folder/env-$i"
            [[ -z $CA_FILE || $guests != tls://* ]] || printf 'HAWSER_CA_FILE=%s\n' "$CA_FILE" >> "$folder/env-$i"
            found=$((found + 1))
        done
    done
    for ((i = 0; i < count; i++)); do
        [ -e "$folder/env-$i" ] || { reason="no vGPU $CLUSTER-$job-$i${reason:+: $reason}"; return 1; }
    done
    printf '%d\n' "$count" > "$folder/count"
    [ "$gres_count" = 0 ] || : > "$folder/local"
}
