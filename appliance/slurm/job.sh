# shellcheck shell=bash disable=SC2034,SC2154 # variables of hawser-slurm
# The facts of the job `job`, from slurmctld. Sourced by hawser-slurm.

# Sets the facts of the job. No field is the user's text, so that no text can pretend to be a field. The id of an array names all its tasks.
read_job() {
    local line found
    found=$(slurm squeue --noheader --all --states=all --jobs="$job" \
        --Format=JobID:20,RestartCnt:10,EndTime:24,Licenses:1000,tres-per-node:1000) || return 1
    while IFS= read -r line; do
        if [ "$(word "${line:0:20}")" = "$job" ]; then
            restart=$(word "${line:20:10}") end=$(word "${line:30:24}")
            licenses=$(count_licenses "$(word "${line:54:1000}")")
            read_gres "$(word "${line:1054:1000}")"
            return
        fi
    done <<< "$found"
    return 1
}

word() { local words; read -r -a words <<< "$1"; printf '%s' "${words[0]:-}"; }

# Prints how many of the licenses $1 are vGPUs: `hawser:2,other:1`, `hawser@server:2`, `hawser`.
count_licenses() {
    local item items sum=0
    IFS=',;|' read -r -a items <<< "$1"
    for item in "${items[@]}"; do
        [[ $item =~ ^"$LICENSE"(@[^:]*)?(:([0-9]{1,4}))?$ ]] && sum=$((sum + ${BASH_REMATCH[3]:-1}))
    done
    echo $sum
}

# Sets gres_type and gres_count of the GRES $1: `gres:vgpu:quarter:1`, `gres/vgpu:2`.
read_gres() {
    local item items
    gres_type='' gres_count=0
    IFS=',' read -r -a items <<< "$1"
    for item in "${items[@]}"; do
        if [[ $item =~ ^gres[:/]"$GRES"(:([a-z][a-z0-9_]*))?([:=]([0-9]{1,4}))?$ ]]; then
            gres_type=${BASH_REMATCH[2]} gres_count=${BASH_REMATCH[4]:-1}
        fi
    done
}

# Sets memory, share and rdma from the size `MEMORY:SHARE` $1 and from the job's comment: `--comment=hawser:memory=4G,share=10,carrier=rdma`. A
# job can only have less than the size, because a license stands for a vGPU of that size.
read_wishes() {
    local comment wish wishes
    memory=${1%%:*} share=${1#*:} rdma=--no-rdma
    comment=$(slurm squeue --noheader --all --states=all --jobs="$job" --format=%k) ||
        { reason="slurmctld did not answer"; return 1; }
    [[ $comment =~ (^|[[:space:]])hawser:([^[:space:]]*) ]] || return 0
    IFS=',' read -r -a wishes <<< "${BASH_REMATCH[2]}"
    reason="the comment must be like hawser:memory=4G,share=10,carrier=rdma with at most memory=$memory and share=$share" is_final=1
    for wish in "${wishes[@]}"; do
        case $wish in
            memory=*)
                [ "$(bytes "${wish#*=}" || echo 0)" -gt 0 ] && [ "$(bytes "${wish#*=}")" -le "$(bytes "$memory")" ] || return 1
                memory=${wish#*=}
                ;;
            share=*)
                [[ ${wish#*=} =~ ^[1-9][0-9]{0,2}$ ]] && [ "${wish#*=}" -le "$share" ] || return 1
                share=${wish#*=}
                ;;
            carrier=tcp) rdma=--no-rdma ;;
            carrier=rdma) rdma=--rdma ;;
            *) return 1 ;;
        esac
    done
    reason='' is_final=0
}

# Prints when the job's vGPUs expire, in seconds since 1970: some time after its end, in case the broker hears of no end.
expiry() {
    local until
    until=$(date -d "$1" +%s 2> /dev/null) || until=$(($(date +%s) + LONGEST)) # N/A of a job without a limit
    echo $((until + GRACE))
}

utc() { date -u -d "@$1" +%FT%TZ; }

# Prints the bytes of the size $1: 8G, 512M, 4096.
bytes() {
    [[ $1 =~ ^([1-9][0-9]{0,11})([KMGT]?)$ ]] || return 1
    case ${BASH_REMATCH[2]} in
        K) echo $((BASH_REMATCH[1] << 10)) ;;
        M) echo $((BASH_REMATCH[1] << 20)) ;;
        G) echo $((BASH_REMATCH[1] << 30)) ;;
        T) echo $((BASH_REMATCH[1] << 40)) ;;
        *) echo "${BASH_REMATCH[1]}" ;;
    esac
}
