# shellcheck shell=bash disable=SC2016,SC2034,SC2154 # scripts of jobs; variables of images/slurm-test
# The jobs of the lane `slurm`, and what they must leave. Sourced by images/slurm-test.

compute='srun sh -c "printenv HAWSER_TOKEN_FILE; stat -c %a:%U:%s \$HAWSER_TOKEN_FILE; /opt/bin/drv_vector_add"'
look='srun sh -c "test -n \$HAWSER_BROKER && test -s \$HAWSER_TOKEN_FILE && echo PASS token"'
# tail ends when hold has failed.
hold='srun sh -c "tail -f /dev/null | /opt/bin/hold"'

# Submits the script $2 as user $1 with the options $3...; sets `job`.
submit() {
    job=$(on ctl runuser -u "$1" -- sbatch --parsable --chdir="/home/$1" --output="/home/$1/%j.out" --time=10 "${@:3}" --wrap="$2" \
        2> "$work/output") || { result="sbatch: $(cat "$work/output")"; return 1; }
}

# Prints the output of job $1, on whichever node it ran. The nodes' files lie below the lane's folder.
output_of() { cat "$work"/machines/node[12]/home/*/"$1".out 2> /dev/null || true; }

# Prints the field $2 of the last run of job $1.
field_of() { on ctl sacct --noheader --parsable2 --allocations --jobs="$1" --format="$2" 2> "$work/output" | tail -n 1; }

has_state() { result=$(field_of "$1" State) && [[ $result =~ ^($2)( |$) ]]; }

# Waits until the job $1 has ended in one of the states $2.
await_end() {
    await 240 has_ended "$1" || { result+=": $(on ctl scontrol show job "$1" 2>&1)"; return 1; }
    has_state "$1" "$2" || { result="job $1 ended as $result, expected $2: $(output_of "$1") $(field_of "$1" AdminComment)"; return 1; }
}
has_ended() { not has_state "$1" 'PENDING|RUNNING|REQUEUED|SUSPENDED|RESIZING|' && [ -n "$(field_of "$1" State)" ]; }

vgpus_of() { of_brokers "vgpus?label=slurm.job=$1"; }
vgpu_count_is() { result=$(vgpus_of "$1") && jq -e --argjson count "$2" 'length == $count' <<< "$result" > /dev/null; }

# Whether nothing of job $1 is left.
is_gone() {
    local node
    vgpu_count_is "$1" 0 || return 1
    for node in node1 node2; do
        result="files of job $1 on $node"
        on $node test ! -e "/run/hawser-slurm/$1" || return 1
    done
    result="a file of job $1 on ctl"
    on ctl test ! -e "/var/lib/hawser-slurm/controller/$1" || return 1
    result=''
}
await_gone() { await 60 is_gone "$1"; }

# Submits a job that holds a vGPU, as `submit`, and waits until its program has a session.
submit_holder() {
    submit "$1" "$hold" "${@:2}"
    await 90 holds "$job" || { result+=": $(on ctl scontrol show job "$job" 2>&1; output_of "$job")"; return 1; }
}
holds() { result=$(output_of "$1") && [[ $result = *READY* ]]; }

passes() { grep -c -E '^PASS (drv_vector_add|token)' <<< "$1" || true; }

# --- Steps.

check_capacity() {
    local count
    on ctl runuser -u slurm -- hawser-slurm capacity --write /etc/slurm/hawser.conf > "$work/output" 2>&1 || { result=$(cat "$work/output"); return 1; }
    count=$(sed -n 's/^Licenses=hawser:\([0-9]*\)$/\1/p' "$work/machines/ctl/etc/slurm/hawser.conf")
    [ "${count:-0}" -eq $((brokers * 6)) ] || { result="not $((brokers * 6)): $(cat "$work/machines/ctl/etc/slurm/hawser.conf" "$work/output")"; return 1; }
    await 30 licenses_are "$count"
    result="$count licenses"
}
licenses_are() { result=$(on ctl scontrol --oneliner show licenses) && [[ $result = *"LicenseName=hawser Total=$1 "* ]]; }

check_two_tasks() {
    local answer
    submit ann "$compute" --licenses=hawser:2 --ntasks=2
    await_end "$job" COMPLETED
    answer=$(output_of "$job")
    [ "$(passes "$answer")" = 2 ] && [[ $answer = *"/run/hawser-slurm/$job/token-0"* && $answer = *"/run/hawser-slurm/$job/token-1"* ]] &&
        [ "$(grep -c '^600:ann:' <<< "$answer")" = 2 ] || { result=$answer; return 1; }
    await_gone "$job"
    counted_job=$job
}

check_accounting() {
    await 60 has_use "$counted_job"
    counted_kernels=${result##*kernels=}
}
has_use() {
    result=$(field_of "$1" AdminComment)
    [[ $result =~ ^hawser:\ vgpus=2\ gpu_seconds=[0-9.]+\ peak_bytes=[0-9]+\ bytes_in=[1-9][0-9]*\ bytes_out=[1-9][0-9]*\ kernels=[1-9] ]]
}

check_wishes() {
    submit_holder ann --licenses=hawser:1 --nodelist=node2 --comment='my run hawser:memory=80M,share=10,carrier=tcp of today'
    vgpus_of "$job" | jq -e '.[0] | .memoryBytes == 83886080 and .computeShare == 10 and .carriers == ["tcp"] and
        .labels."slurm.user" == "ann" and .expires != null' > "$work/output" || { result=$(vgpus_of "$job"); return 1; }
    ! on node2 runuser -u bob -- cat "/run/hawser-slurm/$job/token-0" > "$work/output" 2>&1 || { result="bob can read ann's token"; return 1; }
    on node2 runuser -u ann -- test -r "/run/hawser-slurm/$job/token-0"
    local secret
    secret=$(on node2 cut -d. -f2 "/run/hawser-slurm/$job/token-0")
    ! on node2 sh -c "grep -lqsaF -e '$secret' /proc/[1-9]*/environ" || { result="an environment has the token"; return 1; }
    on ctl scancel "$job"
    await_gone "$job"
}

check_impossible_wish() {
    submit ann "$compute" --licenses=hawser:1 --comment=hawser:memory=900G
    await_end "$job" CANCELLED
    await 30 comment_has "$job" 'the comment must be like'
    await_gone "$job"
}
comment_has() { result=$(field_of "$1" AdminComment) && [[ $result = *"$2"* ]]; }

check_hostile() {
    local machine evil='x Licenses=hawser:9 $(touch /tmp/evil) `touch /tmp/evil`; touch /tmp/evil
JobId=1 Licenses=hawser:9'
    submit_holder ann --licenses=hawser:1 --job-name="$evil" --comment="$evil hawser:share=5"
    vgpus_of "$job" | jq -e 'length == 1 and .[0].computeShare == 5' > "$work/output" || { result=$(vgpus_of "$job"); return 1; }
    on ctl scancel "$job"
    await_gone "$job"
    submit ann 'echo plain:${HAWSER_BROKER:-none}' --job-name="$evil" --comment="$evil"
    await_end "$job" COMPLETED
    [[ $(output_of "$job") = *plain:none* ]] || { result=$(output_of "$job"); return 1; }
    for machine in ctl node1 node2; do
        on $machine test ! -e /tmp/evil || { result="the text was evaluated on $machine"; return 1; }
    done
}

check_gres() {
    submit ann "$compute" --gres=vgpu:quarter:2 --ntasks=2
    await_end "$job" COMPLETED
    [ "$(passes "$(output_of "$job")")" = 2 ] || { result=$(output_of "$job"); return 1; }
    await_gone "$job"
    await 60 own_broker_is_clean
    await 60 has_use "$job"
    submit ann "$compute" --gres=vgpu:quarter:1 --licenses=hawser:1
    await_end "$job" CANCELLED
    await 30 comment_has "$job" 'not both'
}

check_requeued() {
    local before node
    submit_holder ann --licenses=hawser:1 --open-mode=truncate
    before=$(vgpus_of "$job" | jq -r '.[0].id')
    on ctl scontrol requeue "$job"
    for node in node1 node2; do on $node rm -f "/home/ann/$job.out"; done
    await 240 has_other_vgpu "$job" "$before"
    vgpus_of "$job" | jq -e 'length == 1 and .[0].labels."slurm.restart" == "1"' > "$work/output" || { result=$(vgpus_of "$job"); return 1; }
    await 180 holds "$job"
    on ctl scancel "$job"
    await_end "$job" CANCELLED
    await_gone "$job"
}
has_other_vgpu() { result=$(vgpus_of "$1") && jq -e --arg id "$2" 'length == 1 and .[0].id != $id' <<< "$result" > /dev/null; }

check_extended() {
    local before
    submit_holder ann --licenses=hawser:1 --time=5
    before=$(vgpus_of "$job" | jq -r '.[0].expires')
    on ctl scontrol update JobId="$job" TimeLimit=120
    on ctl runuser -u slurm -- hawser-slurm sweep > "$work/output" 2>&1 || { result=$(cat "$work/output"); return 1; }
    await 10 expires_later "$job" "$before" 6000
    on ctl scancel "$job"
    await_gone "$job"
}
# Whether the vGPU of job $1 expires more than $3 seconds after the time $2.
expires_later() {
    result=$(vgpus_of "$1") && jq -e --arg before "$2" --argjson seconds "$3" \
        '(.[0].expires | fromdate) > (($before | fromdate) + $seconds)' <<< "$result" > /dev/null
}
