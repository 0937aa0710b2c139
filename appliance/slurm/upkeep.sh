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
    local found='' url name job expires jobs end files_of_jobs=("$state"/*)
    # The vGPUs and files first: the list of jobs has each job that had them then and still runs.
    for url in $(urls); do
        found+=$(ctl "$url" vgpus list --label "slurm.cluster=$CLUSTER" --fields name,labels.slurm.job,expires |
            sed "s|^|$url\t|")$'\n'
    done
    jobs=$(alive) || { say "slurmctld did not answer; nothing is deleted"; return 1; }
    local -A ends=()
    while read -r job end; do ends[${job:--}]=${end:--}; done <<< "$jobs"
    while IFS=$'\t' read -r url name job expires; do
        [[ $job =~ ^[0-9]+$ ]] || continue
        if [ -z "${ends[$job]:-}" ]; then
            note_vgpu "$url" "$name"
            files_of_jobs+=("$state/$job")
        elif [ "$(expiry "${ends[$job]}")" -gt "$(($(date -d "$expires" +%s 2> /dev/null || echo 0) + 60))" ]; then
            ctl "$url" vgpus change "$name" --expires "$(utc "$(expiry "${ends[$job]}")")" > /dev/null
        fi
    done <<< "$found"
    finish_others "${files_of_jobs[@]}"
}

# Finishes the jobs of the files $@ that are not among `jobs`.
finish_others() {
    local file status=0
    for file in "$@"; do
        [[ ${file##*/} =~ ^[0-9]+$ && -e $file ]] || continue
        grep -q "^${file##*/} " <<< "$jobs" || finish_job "${file##*/}" || status=1
    done
    return $status
}

sweep_node() {
    local jobs folder folders=("$files"/*) files_of_jobs=("$state"/*)
    jobs=$(alive --nodelist="$(hostname -s)") || { say "slurmctld did not answer; nothing is deleted"; return 1; }
    for folder in "${folders[@]}"; do
        [[ ${folder##*/} =~ ^[0-9]+$ ]] || continue
        grep -q "^${folder##*/} " <<< "$jobs" || rm -rf "$folder"
    done
    finish_others "${files_of_jobs[@]}"
}

# Prints how many vGPUs of size MEMORY the brokers have room for, beside the vGPUs that are not Slurm's.
capacity() {
    local url uuid total reserved context vgpu_bytes vgpu_gpu vgpu_broker broker spare sum=0 wanted ours gpus seen=' '
    wanted=$(bytes "$MEMORY") || { say "MEMORY must be like 8G: $MEMORY"; return 1; }
    for url in $(urls); do
        spare=$(ctl "$url" broker --fields pool.size) || return 1
        ours=$(ctl "$url" vgpus list --label "slurm.cluster=$CLUSTER" --fields memoryBytes,placedGpus,broker) || return 1
        gpus=$(ctl "$url" gpus --fields uuid,totalBytes,reservedBytes,contextBytes,broker) || return 1
        while IFS=$'\t' read -r uuid total reserved context broker; do
            # Each broker of a pool lists the GPUs of all, with the name of their broker.
            [[ $seen != *" ${broker:-$url}/$uuid "* ]] || continue
            seen+="${broker:-$url}/$uuid "
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
