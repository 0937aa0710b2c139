# shellcheck shell=bash disable=SC2015,SC2034,SC2154 # variables of images/podman-test
# The steps of the lane `podman`. Sourced by images/podman-test.

image=localhost/hawser-programs
broker_uid=990
declare -A uid=([root]=0 [user]=54001 [other]=54002)
programs=(drv_vector_add hold)

# Gives the lane an /etc of its own, with two users and Podman's settings, so that nothing of the machine changes.
make_machine() {
    local name
    chmod 711 "$work"
    mkdir "$work/etc" "$work/machines" "$work/homes"
    mount -t tmpfs -o mode=755 tmpfs "$work/etc"
    cp -a /etc/. "$work/etc/"
    rm -rf "$work/etc/hawser" "$work/etc/cdi" "$work/etc/containers" "$work/etc/cni/net.d"
    mkdir -p "$work/etc/containers"
    for name in user other; do
        install -d -m 700 -o ${uid[$name]} -g ${uid[$name]} "$work/homes/$name"
        install -d -m 700 -o ${uid[$name]} -g ${uid[$name]} "/run/user/${uid[$name]}"
        echo "$name:x:${uid[$name]}:${uid[$name]}::$work/homes/$name:/bin/sh" >> "$work/etc/passwd"
        echo "$name:x:${uid[$name]}:" >> "$work/etc/group"
        echo "$name:$(((uid[$name] - 54000) * 1000000)):65536" >> "$work/etc/subuid"
        echo "$name:$(((uid[$name] - 54000) * 1000000)):65536" >> "$work/etc/subgid"
        install -d -o ${uid[$name]} -g ${uid[$name]} "$work/homes/$name/.config" "$work/homes/$name/.config/containers"
        printf '[storage]\ndriver = "vfs"\n' > "$work/homes/$name/.config/containers/storage.conf"
    done
    # The broker's user, as in the packages.
    install -d -m 700 -o $broker_uid -g $broker_uid "$work/state"
    printf '[storage]\ndriver = "vfs"\ngraphroot = "%s"\nrunroot = "/run/containers/storage"\n' "$work/storage" \
        > "$work/etc/containers/storage.conf"
    # No systemd is in the lane, and crun refuses the hybrid cgroups of some machines.
    printf '[containers]\ncgroups = "disabled"\n[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "crun"\n' \
        > "$work/etc/containers/containers.conf"
    echo '{"default": [{"type": "insecureAcceptAnything"}]}' > "$work/etc/containers/policy.json"
    mount --bind "$work/etc" /etc
    [ ! -d /sys/fs/cgroup/unified ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
    # Podman warns of a root folder that is not shared; this one is shared only within the lane.
    mount --make-rshared /
}

lane_cleanup() {
    # Podman's layers have files of the users' further ids.
    umount -l /etc "$work/etc" 2> /dev/null
    rm -rf --one-file-system "${work:?}"/{storage,homes,etc,tree}
}

unpack() {
    local folders
    tar -xf "$1" -C "$work/machines"
    folders=("$work"/machines/hawser-*)
    package=${folders[0]}
    libraries=$package/lib/guest
    make_launcher
    [ -x "$package/bin/hawser-broker" ] || die "there is no distribution: $1"
    # Programs with a shared and with a static CUDA runtime. Where nvcc is not installed, the archive has neither.
    shared=vector_add static=static/vector_add
    if [ -x "$package/lib/programs/$static" ]; then
        programs+=("$shared" "$static")
    else
        shared=drv_vector_add static=drv_vector_add
    fi
}

# Starts the broker as its own user, as a script because it is the `launcher` of the library.
make_launcher() {
    printf '#!/bin/sh\nexec setpriv --reuid %s --regid %s --clear-groups --no-new-privs env HOME=%s %s "$@"\n' \
        $broker_uid $broker_uid "$work/state" "$package/bin/hawser-broker" > "$work/launcher"
    chmod 755 "$work/launcher"
    launcher=$work/launcher
}

broker() { lane_broker -Dhawser.listen.host=127.0.0.1 -Dhawser.listen.port=7654 -Dhawser.http.port=7655; }

ctl() { HAWSERCTL_STATE_DIR=$work/state HOME=$work timeout 300 "$package/bin/hawserctl" "$@"; }

make_vgpus() {
    local name
    for name in root-tcp root-shm user-tcp user-shm; do
        quietly ctl vgpus create $name --memory 64M || return 1
    done
}

# Runs podman $2... as user $1. A rootless Podman keeps its state in the user's folders.
podman_as() {
    local name=$1
    shift
    if [ "$name" = root ]; then
        HOME=$work podman "$@"
    else
        (cd "$work/homes/$name" && setpriv --reuid ${uid[$name]} --regid ${uid[$name]} --clear-groups env -i \
            PATH="$PATH" HOME="$work/homes/$name" USER="$name" XDG_RUNTIME_DIR="/run/user/${uid[$name]}" podman "$@")
    fi
}

# Prints why rootless Podman cannot run; nothing if it can.
rootless_obstacle() {
    [ -u "$(command -v newuidmap)" ] || getcap "$(command -v newuidmap)" 2> /dev/null | grep -q setuid ||
        { echo "newuidmap has no right to set user ids"; return; }
    podman_as user info > "$work/output" 2>&1 || { echo "podman info: $(tail -n 1 "$work/output")"; }
}

# Makes the image's tree once: busybox, the programs, and the machine's C library. The CUDA libraries come with the device.
make_tree() {
    local tree=$work/tree file
    [ ! -d "$tree" ] || return 0
    mkdir -p "$tree"/{bin,opt/bin,tmp,etc,usr/bin,lib64}
    install "$(command -v busybox)" "$tree/bin/busybox"
    for file in sh sleep cat touch env ls id mkfifo; do ln -s busybox "$tree/bin/$file"; done
    for file in "${programs[@]}"; do
        put_with_libraries "$tree" "$package/lib/programs/$file" "/opt/bin/$file"
    done
    for file in "$package/bin/hawser" "$libraries"/*.so*; do
        put_libraries "$tree" "$file"
    done
    [ -e "$tree/lib64/ld-linux-x86-64.so.2" ] || cp -L /lib64/ld-linux-x86-64.so.2 "$tree/lib64/"
    # The linker looks for its own name in the folders of libraries when it loads the library of LD_AUDIT.
    file=$(dirname "$(find "$tree/lib" "$tree/usr" -name libc.so.6 | sed -n 1p)")
    [ -e "$file/ld-linux-x86-64.so.2" ] || cp "$tree/lib64/ld-linux-x86-64.so.2" "$file/"
    cp -r "$package/lib/programs/ptx" "$tree/opt/bin/ptx"
    printf 'FROM scratch\nCOPY . /\nENV PATH=/opt/bin:/bin:/usr/bin LD_LIBRARY_PATH=/of/the/image\nWORKDIR /opt/bin\n' > "$work/Containerfile"
    chmod -R a+rX "$tree" "$work/Containerfile"
}

build_image() {
    make_tree
    quietly podman_as "$1" build --quiet --tag $image --file "$work/Containerfile" "$work/tree" || return 1
    result=$(podman_as "$1" image ls --format '{{.Repository}}, {{.Size}}' $image)
}

# Runs step $2 of $1 by the command $3..., which needs a program with a CUDA runtime.
runtime_step() {
    if [ $static = drv_vector_add ]; then
        step_skipped "$1" "$2" "nvcc was missing when the archive was built"
    else
        step "$@"
    fi
}

# Makes the device $1 of the vGPU $2 with the options $3....
make_device() {
    quietly ctl cdi "$2" "${@:3}" || return 1
    [ -s "/etc/cdi/hawser.io-vgpu-$1.json" ] || { result="there is no specification: $(ls /etc/cdi)"; return 1; }
    result=$(sed -n 's/^run *//p' "$work/output")
}

# Runs a container of user $1 with the device $2 and the options of Podman and the command $3...; output in $work/output.
container() {
    podman_as "$1" run --rm --network "${network:-host}" --device "hawser.io/vgpu=$2" --env HAWSER_STATS=1 \
        --env HAWSER_CONNECT_TIMEOUT_MS="${patience:-300000}" "${@:3}" > "$work/output" 2>&1 < /dev/null
}

# Program $4 in a container of user $1 with the device $2 must pass over carrier $3. The options of Podman are $5....
passes() {
    local status=0
    container "$1" "$2" "${@:5}" $image "$4" || status=$?
    program_passed "$work/output" "${4##*/}" "$3" $status
}

# A container as of `passes` must end with CUDA_ERROR_NO_DEVICE and a line with $3.
refused() {
    local status=0
    patience=1000 container "$1" "$2" "${@:4}" $image drv_vector_add || status=$?
    [ $status != 0 ] && grep -q "CUDA_ERROR_NO_DEVICE" "$work/output" && grep -q -e "^hawser.*$3" "$work/output" ||
        { result="status $status, expected \"$3\": $(cat "$work/output")"; return 1; }
    result=$(grep -m 1 '^hawser' "$work/output")
}

# Podman must refuse a container of user $1 with the device $2, by a line with $3.
podman_refuses() {
    local status=0
    container "$1" "$2" $image drv_vector_add || status=$?
    [ $status != 0 ] && grep -q -e "$3" "$work/output" || { result="status $status, expected \"$3\": $(cat "$work/output")"; return 1; }
    result=$(grep -m 1 -e "$3" "$work/output")
}

token() { cat "/etc/hawser/cdi/$1/token"; }

check_secret() {
    local secret
    secret=$(token root-tcp)
    secret=${secret#*.}
    [ "$(stat -c '%a %u' /etc/hawser/cdi/root-tcp/token)" = "600 0" ] || { result=$(ls -l /etc/hawser/cdi/root-tcp); return 1; }
    quietly podman_as root create --name described --network host --device hawser.io/vgpu=root-tcp $image env || return 1
    podman_as root inspect described > "$work/output"
    quietly podman_as root start --attach described || return 1
    podman_as root inspect described >> "$work/output"
    podman_as root rm described > /dev/null
    grep -q 'hawser.io/vgpu=root-tcp' "$work/output" || { result="the description has no device"; return 1; }
    expect "no secret" not grep -rqF -e "$secret" "$work/output" /etc/cdi "$work/storage" || return 1
    container root root-tcp $image env || { result=$(cat "$work/output"); return 1; }
    grep -qx 'LD_LIBRARY_PATH=/usr/lib/hawser/guest' "$work/output" || { result="not the device's variables: $(cat "$work/output")"; return 1; }
    ! grep -qF -e "$secret" "$work/output" || { result="the variables have the secret"; return 1; }
}

check_repeat() {
    local before
    before=$(token root-tcp)
    make_device root-tcp root-tcp
    [ "$(token root-tcp)" = "$before" ] || { result="another token"; return 1; }
    rest_has vgpus/root-tcp/tokens 'length == 1' || return 1
    passes root root-tcp tcp drv_vector_add
}

# As user $1: the device $2 with a new region passes.
region_passes() {
    local options=()
    [ "$1" = root ] || options=(--user "$1")
    make_device "$2" "$2" --new-region 32M "${options[@]}" || return 1
    passes "$1" "$2" shm drv_vector_add || return 1
    network=none passes "$1" "$2" shm $static || return 1
    result+="; $(stat -c '%A, owner %u' "/dev/shm/hawser-cdi-$2")"
}

# `podman exec` does not pass on the device's variables; the settings are in the container's guest.toml.
check_exec() {
    local status=0
    quietly podman_as root run --detach --name served --network host --device hawser.io/vgpu=root-tcp $image sleep 1000 || return 1
    podman_as root exec --env HAWSER_STATS=1 --env HAWSER_CONNECT_TIMEOUT_MS=300000 served hawser run $static \
        > "$work/output" 2>&1 || status=$?
    quietly_remove served || return 1
    program_passed "$work/output.exec" "${static##*/}" tcp $status
}

# Removes the container $1 of root; the output of an earlier command moves to $work/output.exec.
quietly_remove() {
    mv "$work/output" "$work/output.exec"
    quietly podman_as root rm --force --time 0 "$1"
}

check_kill() {
    await 300 has_sessions 0 || return 1
    quietly podman_as root run --detach --interactive --name held --network host --device hawser.io/vgpu=root-shm $image hold || return 1
    await 300 has_sessions 1 || { result+=": $(podman_as root logs held 2>&1)"; return 1; }
    rest_has sessions '.[0].program | test("hold")' || return 1
    quietly podman_as root kill held || return 1
    await 60 has_sessions 0 || return 1
    quietly_remove held
}

check_read_only() {
    container user user-tcp $image sh -c 'for f in /run/hawser/token /etc/hawser/guest.toml /usr/lib/hawser/guest/new /usr/bin/hawser; do
        if touch $f 2> /dev/null && echo x >> $f; then echo "written: $f"; fi; done; id' || { result=$(cat "$work/output"); return 1; }
    grep -q '^uid=0' "$work/output" && ! grep written "$work/output" || { result=$(cat "$work/output"); return 1; }
}

check_two() {
    local first second
    podman_as user run --rm --network host --device hawser.io/vgpu=user-shm --env HAWSER_STATS=1 $image drv_vector_add > "$work/first" 2>&1 &
    first=$!
    podman_as user run --rm --network host --device hawser.io/vgpu=user-shm --env HAWSER_STATS=1 $image $shared > "$work/second" 2>&1 &
    second=$!
    local status=0
    wait $first || status=$?
    program_passed "$work/first" drv_vector_add shm $status || return 1
    status=0
    wait $second || status=$?
    program_passed "$work/second" $shared shm $status
}

# In the container of `other`, the file $2 of device $1 cannot be opened, also not by the libraries without the settings' file.
not_readable() {
    ! container other "$1" $image cat "$2" && grep -q "$2.*Permission denied" "$work/output" || { result=$(cat "$work/output"); return 1; }
    refused other "$1" "$2.*Permission denied" --env HAWSER_CONFIG=/dev/null --env HAWSER_CARRIER="$3"
}

check_other_user() {
    build_image other || return 1
    refused other user-tcp "Permission denied" || return 1
    not_readable user-tcp /run/hawser/token tcp
}

check_other_region() { not_readable user-shm /run/hawser/region shm; }

# The device of `user` goes to `other` and back.
check_new_user() {
    make_device user-shm user-shm --new-region 32M --user other || return 1
    passes other user-shm shm drv_vector_add || return 1
    refused user user-shm "Permission denied" || return 1
    make_device user-shm user-shm --new-region 32M --user user || return 1
    passes user user-shm shm drv_vector_add
}

# slirp4netns shows the loopback address of the machine as 10.0.2.2.
check_network() {
    make_device user-tcp user-tcp --user user --broker 10.0.2.2:7654 || return 1
    network=slirp4netns:allow_host_loopback=true passes user user-tcp tcp drv_vector_add || return 1
    local text=$result
    make_device user-tcp user-tcp --user user || return 1
    result=$text
}

check_restart() {
    stop_broker
    broker
    passes root root-tcp tcp drv_vector_add || return 1
    # The broker has removed its region at its end.
    podman_refuses root root-shm "hawser-cdi-root-shm" || return 1
    local text=$result
    make_device root-shm root-shm --new-region 32M || return 1
    passes root root-shm shm drv_vector_add || return 1
    result=$text
}

check_deleted() {
    quietly ctl vgpus delete root-tcp --yes || return 1
    refused root root-tcp "token" || return 1
    local text=$result
    quietly ctl cdi root-tcp --remove --yes || return 1
    [ ! -e /etc/hawser/cdi/root-tcp ] || { result="left: $(ls /etc/hawser/cdi/root-tcp)"; return 1; }
    podman_refuses root root-tcp "unresolvable CDI devices" || return 1
    result="$text; $result"
}

check_removed() {
    local name names=(root-shm)
    [ ! -e /etc/cdi/hawser.io-vgpu-user-tcp.json ] || names+=(user-tcp user-shm)
    for name in "${names[@]}"; do
        quietly ctl cdi "$name" --remove --yes || return 1
        rest_has "vgpus/$name/tokens" 'length == 0' || return 1
        podman_refuses root "$name" "unresolvable CDI devices" || return 1
    done
    [ -z "$(find /etc/cdi /etc/hawser/cdi -type f)" ] || { result="left: $(find /etc/cdi /etc/hawser/cdi)"; return 1; }
    ! ls /dev/shm/hawser-* > "$work/output" 2>&1 || { result="left: $(cat "$work/output")"; return 1; }
}

check_nothing_left() {
    await 300 has_sessions 0 || return 1
    rest_has regions 'length == 0' || return 1
    rest_has tokens 'all(.note | startswith("container device") | not)' || return 1
    stop_broker
    quietly no_defects "$work/state.log"
}
