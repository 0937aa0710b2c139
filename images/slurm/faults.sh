# shellcheck shell=bash disable=SC2034,SC2154 # variables of images/slurm-test
# Brokers that are away when a job starts, hooks that Slurm ends, and what must not be left. Sourced by images/slurm-test.

# --- Brokers that are away.

# A frozen broker accepts connections and answers nothing.
freeze() { kill -STOP "${broker_pids[$1]}" && broker_frozen[$1]=1; }
thaw() { kill -CONT "${broker_pids[$1]}" && broker_frozen[$1]=''; }

# Adds the lines $2... to the settings of machine $1; `restore_settings` takes them back.
add_settings() {
    on "$1" cp -p /etc/hawser/slurm.conf /etc/hawser/slurm.conf.saved
    printf '%s\n' "${@:2}" >> "$work/machines/$1/etc/hawser/slurm.conf"
}
restore_settings() { on "$1" mv /etc/hawser/slurm.conf.saved /etc/hawser/slurm.conf; }

# Whether the job $1 waits for another run, and the reason $2 is its comment.
is_requeued_for() {
    result=$(on ctl scontrol show job "$1") &&
        [[ $result =~ Restarts=[1-9] && $result = *"$2"* ]]
}

# Of three brokers one is dead and another one frozen. Three jobs in a row begin with different brokers.
check_one_answers() {
    local id ids=() starts='' machine
    # Until check_prolog_timeout, since each hook waits that long for a frozen broker.
    for machine in ctl node1 node2; do echo LIMIT=8 >> "$work/machines/$machine/etc/hawser/slurm.conf"; done
    kill_lane_broker 1
    freeze 2
    [ "$alone" = 1 ] || await 60 are_silent 3 1 2
    for id in 1 2 3; do
        submit ann "$compute" --licenses=hawser:1
        ids+=("$job") starts+=$((job % 3))
    done
    [[ $starts = *0* && $starts = *1* && $starts = *2* ]] || { result="the jobs begin with the same broker: ${ids[*]}"; return 1; }
    for id in "${ids[@]}"; do
        await_end "$id" COMPLETED
        [ "$(passes "$(output_of "$id")")" = 1 ] || { result="job $id: $(output_of "$id")"; return 1; }
        # The brokers that are away had no sessions of the job.
        await 120 has_some_use "$id"
    done
    for id in "${ids[@]}"; do
        await_gone "$id"
    done
    result="jobs ${ids[*]}"
}
are_silent() { is_silent "$1" "$2" && is_silent "$1" "$3"; }
# Whether job $1 of one task has half the use of the earlier job of two tasks, when all brokers answered.
has_some_use() {
    result=$(field_of "$1" AdminComment) && [[ $result =~ ^hawser:\ vgpus=1\ .*kernels=([1-9][0-9]*)$ ]] &&
        [ "$((2 * BASH_REMATCH[1]))" = "$counted_kernels" ]
}

# The node's Prolog cannot reach the brokers: the job is requeued with a reason, in time, and the node stays in use.
check_node_away() {
    local start id
    add_settings node2 'BROKERS="http://10.78.0.2:7655=10.78.0.2:7654"' 'LIMIT=5 HOOK_LIMIT=8'
    start=$SECONDS
    submit ann "$compute" --licenses=hawser:1 --nodelist=node2
    id=$job
    await 120 is_requeued_for "$id" 'no broker answers: http://10.78.0.2:7655'
    start=$((SECONDS - start))
    restore_settings node2
    result=$(on ctl sinfo --noheader --nodes=node2 --format=%T)
    [[ $result =~ ^(idle|mixed|allocated|completing)$ ]] || { result="node2 is $result"; return 1; }
    await_end "$id" COMPLETED
    [ "$(passes "$(output_of "$id")")" = 1 ] || { result="job $id: $(output_of "$id")"; return 1; }
    await_gone "$id"
    result="requeued after $start s"
}

# No broker answers: the job is requeued with a reason, and runs when they answer again.
check_none_answers() {
    freeze 3
    add_settings ctl 'LIMIT=5'
    submit ann "$compute" --licenses=hawser:1
    await 120 is_requeued_for "$job" 'no broker answers: http://'
    restore_settings ctl
    answer_again
    await_end "$job" COMPLETED
    [ "$(passes "$(output_of "$job")")" = 1 ] || { result="job $job: $(output_of "$job")"; return 1; }
    await_gone "$job"
}

# Thaws the brokers 2 and 3, starts broker 1, and waits until all are in the pool.
answer_again() {
    thaw 2
    thaw 3
    [ -n "${broker_pids[1]}" ] || start_lane_broker 1
    await 60 all_gpus_are_known
}

# Slurm ends a PrologSlurmctld that exceeds PrologEpilogTimeout, while its question is with a broker. The broker makes the vGPU later.
check_prolog_timeout() {
    local number limit machine
    limit=$(sed -n 's/^PrologEpilogTimeout=//p' "$work/machines/ctl/etc/slurm/slurm.conf")
    for number in 1 2 3; do freeze $number; done
    add_settings ctl 'LIMIT=600 HOOK_LIMIT=600'
    on ctl sed -i 's/^PrologEpilogTimeout=.*/PrologEpilogTimeout=15/' /etc/slurm/slurm.conf
    on ctl scontrol reconfigure
    submit ann "$compute" --licenses=hawser:1
    await 120 has_restarted "$job"
    restore_settings ctl
    for machine in ctl node1 node2; do on $machine sed -i /^LIMIT=8$/d /etc/hawser/slurm.conf; done
    on ctl sed -i "s/^PrologEpilogTimeout=.*/PrologEpilogTimeout=$limit/" /etc/slurm/slurm.conf
    on ctl scontrol reconfigure
    thaw 1
    answer_again
    await_end "$job" COMPLETED
    [ "$(passes "$(output_of "$job")")" = 1 ] || { result="job $job: $(output_of "$job")"; return 1; }
    await 60 is_swept
    is_gone "$job"
}
has_restarted() { result=$(on ctl scontrol show job "$1") && [[ $result =~ Restarts=[1-9] ]]; }

# --- The sweeps.

check_sweep() {
    curl -sS -f --max-time 60 -H @"$work/admin1.header" -H 'Content-Type: application/json' \
        --data '{"name":"slurm-999999-0","labels":{"slurm.cluster":"slurm","slurm.job":"999999"}}' http://10.78.0.1:7655/api/v1/vgpus > "$work/output"
    submit_holder ann --licenses=hawser:1
    quietly on ctl runuser -u slurm -- hawser-slurm sweep
    await 10 vgpu_count_is 999999 0
    holds "$job"
    vgpu_count_is "$job" 1
    on ctl scancel "$job"
    await_gone "$job"
}

# What jobs leave on a node whose slurmd has called no Epilog; 999998 is a Prolog that was killed.
check_sweep_node() {
    submit_holder ann --gres=vgpu:quarter:1
    quietly own_broker node1 vgpus create slurm-999999-0 --label slurm.cluster=slurm --label slurm.job=999999
    on node1 sh -ec 'cd /run/hawser-slurm; mkdir 999999 .999998.abcdef; echo k.s > 999999/token-0; cp 999999/token-0 .999998.abcdef
        echo local slurm-999999-0 > /var/lib/hawser-slurm/node/999999'
    quietly on node1 hawser-slurm sweep-node
    result=$(on node1 ls -A /run/hawser-slurm | xargs)
    [ "$result" = "$job" ] || { result="not only $job: $result"; return 1; }
    result=$(own_broker node1 vgpus list --fields name | xargs)
    [ "$result" = "default slurm-$job-0" ] || { result="vGPUs: $result"; return 1; }
    holds "$job"
    on ctl scancel "$job"
    await_gone "$job"
    await 60 own_broker_is_clean
}

# --- What must not be left.

# Whether no log, spool, database or output has the secret of a token. The lane's Prolog has noted each token.
check_secrets() {
    local places=("$work"/*.log "$work/machines/ctl/var/lib/slurm" "$work/machines/ctl/var/log" "$work"/machines/node[12]/var/lib/slurm
        "$work"/machines/node[12]/var/log "$work"/machines/node[12]/home "$work/dump.accounting" "$work/dump.pool") machine count
    on ctl mariadb-dump slurm_acct_db > "$work/dump.accounting"
    : > "$work/dump.pool"
    [ -z "$database_pid" ] || PGCONNECT_TIMEOUT=10 timeout 60 "$postgres_programs/pg_dump" -h 127.0.0.1 -U hawser postgres > "$work/dump.pool"
    cat "$work"/machines/node[12]/var/lib/lane-tokens > "$work/tokens"
    cut -d. -f1 "$work/tokens" | sort -u > "$work/keys"
    cut -d. -f2 "$work/tokens" | sort -u > "$work/secrets"
    count=$(grep -c -E '^.{20,}$' "$work/secrets")
    [ "$count" -ge $((many_total / 2)) ] && [ "$count" = "$(wc -l < "$work/secrets")" ] ||
        { result="too few tokens, or tokens without a secret: $count"; return 1; }
    # The keys are no secrets and in the brokers' logs; the same search must find them there.
    [ "$(grep -ohF -f "$work/keys" "$work"/broker*.log "$work/node1.hawser-broker.log" | sort -u | wc -l)" = "$(wc -l < "$work/keys")" ] ||
        { result="the brokers' logs lack keys of tokens"; return 1; }
    result=$(grep -rlaF -f "$work/secrets" "${places[@]}" || true)
    [ -z "$result" ] || { result="files with a token's secret: $result"; return 1; }
    for machine in ctl node1 node2; do
        result=$(on $machine sh -c 'cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2> /dev/null' | grep -oaF -f "$work/secrets" | head -n 1 || true)
        [ -z "$result" ] || { result="a process of $machine has a token's secret"; return 1; }
    done
    result="$count secrets, searched in $(du -cm "${places[@]}" | tail -n 1 | cut -f1) MiB"
}

# Whether the machines have no file of a job.
has_no_files() {
    local machine
    for machine in ctl node1 node2; do
        # The lock is no file of a job.
        result=$(on $machine sh -c 'for folder in /run/hawser-slurm /var/lib/hawser-slurm/*; do
            [ ! -d $folder ] || find $folder -mindepth 1 ! -name .lock; done') || { result="$machine: $result"; return 1; }
        [ -z "$result" ] || { result="files on $machine: $result"; return 1; }
    done
}

vgpus_are_only_default() {
    local number expected='["default"]'
    for ((number = 1; number <= brokers; number++)); do
        result=$(of_broker "$number" vgpus) && jq -e --argjson names "$expected" 'map(.name) == $names' <<< "$result" > /dev/null || return 1
    done
    result=''
}

has_only_defaults() {
    vgpus_are_only_default || return 1
    local number
    for ((number = 1; number <= brokers; number++)); do
        result=$(of_broker "$number" tokens) && jq -e 'map(.keyId) == ["default"]' <<< "$result" > /dev/null &&
            result=$(of_broker "$number" sessions) && jq -e 'length == 0' <<< "$result" > /dev/null || { result="broker $number: $result"; return 1; }
    done
    if [ -n "$database_pid" ]; then
        result=$(sql "select 'vgpu', name from vgpu where name <> 'default' union all select 'token', key_id from token where key_id <> 'default'
            union all select 'act', id from act") && [ -z "$result" ] || { result="rows: $result"; return 1; }
    fi
    result=''
}

check_nothing_left() {
    local log
    await 60 has_only_defaults
    await 60 own_broker_is_clean
    has_no_files
    result=$(on ctl sinfo --noheader --format=%T)
    [ "$result" = idle ] || { result="a node is not idle: $result"; return 1; }
    for log in "$work"/broker*.log "$work/node1.hawser-broker.log"; do
        result=$(no_defects "$log") || { result="the log $log reports a defect: $result"; return 1; }
    done
    result=''
}
