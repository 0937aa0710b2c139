# shellcheck shell=bash disable=SC2034,SC2154 # variables of images/slurm-test
# The PostgreSQL server of the lane's pool, and the samples of what brokers and database have reserved. Sourced by images/slurm-test.

# The folder of initdb and postgres; the newest of Debian's.
postgres_programs=$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -n 1 || true)
postgres_programs=${postgres_programs%/initdb}
database_folder=/run/postgres # in the lane's own /run, in memory
database_pid=''

# PostgreSQL refuses to run as root.
as_postgres() { (cd / && exec setpriv --reuid=nobody --regid=nogroup --clear-groups env -i PATH="$PATH" LC_ALL=C.UTF-8 "$@"); }

# Starts the server at 127.0.0.1:5432 of the lane's network, where no machine of the lane reaches it. Its log has all statements.
start_database() {
    local options=(-c listen_addresses=127.0.0.1 -c port=5432 -c unix_socket_directories="$database_folder" -c max_connections=200
        -c fsync=off -c log_statement=all)
    install -d -o nobody -g nogroup -m 700 "$database_folder"
    as_postgres timeout 120 "$postgres_programs/initdb" -D "$database_folder/data" -U hawser --auth=trust --no-sync -E UTF8 \
        > "$work/postgres.log" 2>&1
    as_postgres "$postgres_programs/postgres" -D "$database_folder/data" "${options[@]}" >> "$work/postgres.log" 2>&1 < /dev/null &
    database_pid=$!
    await_while "$database_pid" 60 database_answers
    result="PostgreSQL $(sql 'show server_version')"
}
database_answers() { result=$(sql 'select 1' 2>&1) && result=''; }

# Prints the rows of the query $1, with tabs between the columns.
sql() {
    PGCONNECT_TIMEOUT=10 timeout 30 "$postgres_programs/psql" -h 127.0.0.1 -p 5432 -U hawser -d postgres -XAtq -F $'\t' -c "$1" < /dev/null
}

# The reservations of each GPU by the table of vGPUs. A vGPU without a GPU counts on each GPU of its broker.
reservations_query="select b.name, g ->> 'uuid', coalesce(sum(v.memory_bytes), 0), (g ->> 'totalBytes')::bigint
    from broker b cross join lateral jsonb_array_elements(b.gpus::jsonb) g
    left join vgpu v on v.broker = b.id and (v.placed = '' or g ->> 'uuid' = any (string_to_array(v.placed, ',')))
    group by 1, 2, g"

# Samples the reservations of all GPUs until the lane ends: what each broker answers, what the database has, and what the node's own broker
# answers. A line is BROKER, GPU, reserved bytes, bytes of the GPU.
watch_reservations() {
    local number sample
    truncate -s 0 "$work/samples.rest" "$work/samples.sql" "$work/samples.own"
    (
        for ((sample = 0; sample < 5000; sample++)); do
            for ((number = 1; number <= brokers; number++)); do
                # A broker that is away gives no sample.
                curl -sS --max-time 5 -f -H @"$work/admin$number.header" "http://10.78.0.$number:7655/api/v1/gpus" 2> /dev/null |
                    print_reservations >> "$work/samples.rest" || true
            done
            [ -z "$database_pid" ] || sql "$reservations_query" >> "$work/samples.sql" 2> /dev/null || true
            in_net node1 curl -sS --max-time 5 -f -H @"$work/own.header" http://127.0.0.1:7655/api/v1/gpus 2> /dev/null |
                print_reservations >> "$work/samples.own" || true
            sleep 0.5 # between two samples
        done
    ) > /dev/null 2>&1 < /dev/null &
}
print_reservations() { jq -r '.[] | [.broker, .uuid, .reservedBytes, .totalBytes] | @tsv'; }

# Whether the samples $1 are at least $2, none has more than the GPU, and one has at least the part $3 of the GPU: else they show nothing.
samples_are_good() {
    result=$(awk -F '\t' -v least="$2" -v part="$3" '
        NF != 4 || $4 <= 0 { print "no sample: " $0; bad = 1; exit }
        $3 > $4 { print "over-reserved: " $0; bad = 1; exit }
        $3 / $4 > most { most = $3 / $4 }
        END {
            if (bad) exit 1
            printf "%d samples, at most %.2f", NR, most
            exit NR < least || most < part
        }' "$work/samples.$1") || { result="$1: $result"; return 1; }
}

check_reservations() {
    local text
    samples_are_good rest 300 0.4
    text="REST: $result"
    if [ -n "$database_pid" ]; then
        samples_are_good sql 100 0.4
        text+="; SQL: $result"
    fi
    samples_are_good own 100 0.001
    result="$text; own: $result"
}
