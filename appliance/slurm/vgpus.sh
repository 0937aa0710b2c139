# shellcheck shell=bash disable=SC2034,SC2154 # variables of hawser-slurm
# The vGPUs and tokens of the job `job`. Sourced by hawser-slurm.

# Makes the vGPU $1 of the job at the first of the brokers $2... that has room for it, and notes it. `reason` explains a failure.
make_vgpu() {
    local name=$1 url status answer
    shift
    for url in "$@"; do
        note_vgpu "$url" "$name" || { reason="the folder $state cannot be written"; return 1; }
        status=0
        answer=$(create "$url" "$name" 2>&1) || status=$?
        # An earlier run of the job has left it: its labels name another restart.
        if [ $status = 1 ] && [[ $(ctl "$url" vgpus show "$name" --fields labels.slurm.cluster,labels.slurm.job 2> /dev/null) = \
            "$CLUSTER"$'\t'"$job" ]]; then
            ctl "$url" vgpus delete "$name" --force --yes > /dev/null 2>&1
            status=0
            answer=$(create "$url" "$name" 2>&1) || status=$?
        fi
        [ $status != 0 ] || return 0
        [ $status != 124 ] || answer="no answer within $LIMIT s"
        reason="${answer##*hawserctl: }"
    done
    reason=${reason:-no broker is set}
    return 1
}

# Notes the vGPU $2 of the broker $1, before it is made: after a crash the sweep finds a vGPU whose answer was lost.
note_vgpu() { grep -qxF "$1 $2" "$state/$job" 2> /dev/null || printf '%s %s\n' "$1" "$2" >> "$state/$job"; }

create() {
    ctl "$1" vgpus create "$2" --if-absent --memory "$memory" --share "$share" --carriers tcp "$rdma" --expires "$(utc "$expires")" \
        --label "slurm.cluster=$CLUSTER" --label "slurm.job=$job" --label "slurm.restart=$restart" \
        --label "slurm.user=${SLURM_JOB_USER:-}" --fields name
}

# Prints lines with the use of the vGPU $2 of broker $1. In a pool each broker knows the sessions that it has had itself.
use_of() {
    local others=$1 url
    [ "$1" = $local_broker ] || others=$(urls)
    for url in $others; do
        ctl "$url" vgpus statistics "$2" --fields gpuTimeMs,peakBytes,bytesIn,bytesOut,kernels 2> /dev/null
    done
}

# Deletes the vGPUs that the file of job $1 names, and adds their use to the job's accounting. Keeps the file, for the sweep, if a broker does
# not answer.
finish_job() {
    local job=$1 url name status left='' use sums=(0 0 0 0 0) i count=0 value
    while read -r url name; do
        use=$(use_of "$url" "$name")
        status=0
        ctl "$url" vgpus delete "$name" --force --yes > /dev/null 2>&1 || status=$?
        case $status in
            0)
                count=$((count + 1)) i=0
                for value in $use; do
                    [[ $value =~ ^[0-9]+$ ]] && sums[i % 5]=$((sums[i % 5] + value))
                    i=$((i + 1))
                done
                ;;
            5) ;; # it exists no longer, or was never made at this broker
            *) left+="$url $name"$'\n' ;;
        esac
    done < "$state/$job"
    if [ $count -gt 0 ]; then
        comment "$(printf 'hawser: vgpus=%d gpu_seconds=%d.%03d peak_bytes=%d bytes_in=%d bytes_out=%d kernels=%d' $count \
            $((sums[0] / 1000)) $((sums[0] % 1000)) "${sums[@]:1}")"
    fi
    if [ -n "$left" ]; then
        printf '%s' "$left" > "$state/.$job.new" && mv "$state/.$job.new" "$state/$job"
        say "job $job: a broker did not delete a vGPU; the sweep tries again"
        return 1
    fi
    rm -f "$state/$job"
}

# Writes the text $1, in lower case since sacctmgr makes it so, where users and the accounting find it: scontrol show job and
# sacct --format=AdminComment.
comment() {
    slurm scontrol update "JobId=$job" "AdminComment=$1" > /dev/null 2>&1 ||
        slurm sacctmgr --immediate modify job where "jobid=$job" set "AdminComment=$1" > /dev/null 2>&1
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

# Writes a token and the environment for each of the job's vGPUs into folder $1.
put_tokens() {
    local folder=$1 broker url names name i=0 count=$((gres_count > 0 ? gres_count : licenses)) guests
    local brokers=$BROKERS
    [ "$gres_count" = 0 ] || brokers=$local_broker
    for broker in $brokers; do
        url=${broker%%=*} guests=${broker#*=}
        names=$(ctl "$url" vgpus list --label "slurm.cluster=$CLUSTER" --label "slurm.job=$job" --label "slurm.restart=$restart" \
            --fields name 2>&1) || { reason=${names##*hawserctl: }; continue; }
        [ "$url" != $local_broker ] || guests=$(ctl "$url" broker --fields guestEndpoint 2> /dev/null)
        for name in $names; do
            i=${name##*-}
            [[ $name = "$CLUSTER-$job-$i" && $i =~ ^[0-9]+$ && ! -e $folder/token-$i ]] || continue
            # With --replace a repeated Prolog leaves no second token.
            reason=$(ctl "$url" tokens create "$name" --replace --note "slurm ${SLURMD_NODENAME:-}" --out "$folder/token-$i" \
                --fields keyId 2>&1) || { reason=${reason##*hawserctl: }; return 1; }
            printf 'HAWSER_BROKER=%s\nHAWSER_TOKEN_FILE=%s\n' "$guests" "$files/$job/token-$i" > "$folder/env-$i"
            [[ -z $CA_FILE || $guests != tls://* ]] || printf 'HAWSER_CA_FILE=%s\n' "$CA_FILE" >> "$folder/env-$i"
        done
    done
    for ((i = 0; i < count; i++)); do
        [ -e "$folder/env-$i" ] || { reason="the brokers have no vGPU $CLUSTER-$job-$i: ${reason:-}"; return 1; }
    done
    printf '%d\n' "$count" > "$folder/count"
    [ "$gres_count" = 0 ] || : > "$folder/local"
}
