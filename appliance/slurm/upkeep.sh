# shellcheck shell=bash disable=SC2034,SC2154 # variables of hawser-slurm
# The commands of administrators and timers. Sourced by hawser-slurm.

# Prints the ids of the jobs that have resources, with their ends. A pending job has none.
alive() {
    slurm squeue --noheader --all --states=all --format='%A %T %e' "$@" |
        while read -r id job_state end; do
            case $job_state in
                RUNNING | CONFIGURING | COMPLETING | SUSPENDED | STOPPED | RESIZING | SIGNALING | STAGE_OUT) printf '%s %s\n' "$id" "$end" ;;
            esac
        done
}

sweep() {
    local found='' broker name job='' expires jobs end files_of_jobs=("$state"/*)
    # The vGPUs and files first: the list of jobs has each job that had them then and still runs.
    for broker in $(brokers); do
        ask "$broker" vgpus list --label "slurm.cluster=$CLUSTER" --fields name,labels.slurm.job,expires || continue
        found+=$(sed "s|^|$broker\t|" <<< "$answer")$'\n'
    done
    jobs=$(alive) || { say "slurmctld did not answer; nothing is deleted"; return 1; }
    local -A ends=()
    while read -r job end; do ends[${job:--}]=${end:--}; done <<< "$jobs"
    while IFS=$'\t' read -r broker name job expires; do
        [[ $job =~ ^[0-9]+$ ]] || continue
        if [ -z "${ends[$job]:-}" ]; then
            note_vgpu "$broker" "$name"
            files_of_jobs+=("$state/$job")
        elif [ "$(expiry "${ends[$job]}")" -gt "$(($(date -d "$expires" +%s 2> /dev/null || echo 0) + 60))" ]; then
            ask "$broker" vgpus change "$name" --expires "$(utc "$(expiry "${ends[$job]}")")"
        fi
    done <<< "$found"
    job=''
    finish_others "${files_of_jobs[@]}"
}

# Finishes the jobs of the files $@ that are not among `jobs`. alive_options are squeue's for the list of jobs.
finish_others() {
    local file id status=0
    for file in "$@"; do
        id=${file##*/}
        [[ $id =~ ^[0-9]+$ && -e $file ]] && ! grep -q "^$id " <<< "$jobs" || continue
        # The job may have started again since the list of jobs, with new vGPUs of the same names. While the sweep has the lock, no hook
        # makes any.
        if lock -x && jobs=$(alive "${alive_options[@]}") && [ -e "$file" ]; then
            grep -q "^$id " <<< "$jobs" || finish_job "$id" || status=1
        else
            [ ! -e "$file" ] || status=1
        fi
        unlock
    done
    return $status
}

sweep_node() {
    local jobs folder id folders files_of_jobs=("$state"/*) job=''
    [ -d "$state" ] || return 0 # no job has had a vGPU here
    alive_options=("--nodelist=${NODE:-$(hostname -s)}")
    # With the lock alone, no Prolog is at work: each folder is that of a job with resources, or of a job that is over. A name with a dot is
    # that of a Prolog that was killed.
    lock -x || { say "a hook has worked for $((2 * LIMIT)) s; nothing is deleted"; return 1; }
    jobs=$(alive "${alive_options[@]}") || { say "slurmctld did not answer; nothing is deleted"; return 1; }
    folders=("$files"/* "$files"/.[0-9]*)
    for folder in "${folders[@]}"; do
        id=${folder##*/} id=${id#.} id=${id%%.*}
        [[ $id =~ ^[0-9]+$ ]] || continue
        grep -q "^$id " <<< "$jobs" || rm -rf "$folder"
    done
    unlock
    finish_others "${files_of_jobs[@]}"
}

# Prints how many vGPUs of size MEMORY the brokers have room for, beside the vGPUs that are not Slurm's.
capacity() {
    local word uuid total reserved context vgpu_bytes vgpu_gpu vgpu_broker broker spare sum=0 wanted ours gpus seen=' '
    wanted=$(bytes "$MEMORY") || { say "MEMORY must be like 8G: $MEMORY"; return 1; }
    for word in $(brokers); do
        ask "$word" broker --fields pool.size || return 1
        spare=$answer
        ask "$word" vgpus list --label "slurm.cluster=$CLUSTER" --fields memoryBytes,placedGpus,broker || return 1
        ours=$answer
        ask "$word" gpus --fields uuid,totalBytes,reservedBytes,contextBytes,broker || return 1
        gpus=$answer
        while IFS=$'\t' read -r uuid total reserved context broker; do
            # Each broker of a pool lists the GPUs of all, with the name of their broker. A pool may be listed as several words.
            [[ $seen != *" ${broker:-$word}/$uuid "* ]] || continue
            seen+="${broker:-$word}/$uuid "
            while IFS=$'\t' read -r vgpu_bytes vgpu_gpu vgpu_broker; do
                [ "$vgpu_broker/$vgpu_gpu" != "$broker/$uuid" ] || reserved=$((reserved - vgpu_bytes))
            done <<< "$ours"
            total=$((total - reserved - spare * context))
            sum=$((sum + (total > 0 ? total / (wanted + context) : 0)))
        done <<< "$gpus"
    done
    printf '%s\n' $sum
}

print_capacity() {
    local count text
    count=$(capacity) || { say "a broker did not answer"; return 1; }
    text=$(printf '# Written by hawser-slurm capacity.\nLicenses=%s%s:%d' "${OTHER_LICENSES:+$OTHER_LICENSES,}" "$LICENSE" "$count")
    if [ "${1:-}" != --write ]; then
        printf '%s\n' "$text"
    elif [ "$(cat "${2:?--write needs a file}" 2> /dev/null)" != "$text" ]; then
        (umask 022; printf '%s\n' "$text" > "$2.new") && mv "$2.new" "$2" && slurm scontrol reconfigure
    fi
}
