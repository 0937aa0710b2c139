# shellcheck shell=bash disable=SC2034,SC2154 # variables of ../test
# The steps of the lane `packages` with the .deb package of a guest. Sourced by ../test.

program=drv_vector_add

# Makes the program linked like the guest libraries, so that it also runs with glibc 2.31.
make_program() {
    local glibc=$root/guest-agent/interposer/target/cmake/glibc
    mkdir -p "$old/opt/bin"
    quietly gcc -std=c11 -D_GNU_SOURCE -O2 -I"$root/appliance/programs/common" -I"$root/appliance/programs/driver" -o "$old/opt/bin/$program" \
        "$root/appliance/programs/driver/$program.c" "$glibc"/CMakeFiles/hws_old_glibc.dir/compat.c.o \
        "$glibc"/CMakeFiles/hws_old_start.dir/start.c.o -Wl,--wrap=__libc_start_main -Wl,--as-needed "$glibc"/lib/*.so \
        "$libraries/libcuda.so.1" -lm
    cp -r "$root/appliance/programs/ptx" "$old/opt/bin/ptx"
    rm -rf "$old/opt/bin/ptx/.done"
}

# Runs a command on Debian 11 with time for the first worker.
within_guest() { quietly within "$old" env HAWSER_CONNECT_TIMEOUT_MS=120000 "$@"; }

# Installs the guest's package.
install_deb() {
    cp "${deb[guest]}" "$old/tmp/"
    quietly within "$old" dpkg -i "/tmp/$(basename "${deb[guest]}")"
}

install_guest() {
    local said
    make_program
    picture "$old" > "$work/old.before"
    install_deb
    quietly within "$old" hawser libraries status
    expect "the linker knows the guest's libcuda.so.1" linker_knows "$old" 'libcuda.so.1 .*=> /usr/lib/hawser/guest/'
    printf '[guest]\nbroker = "%s"\ntoken = "%s"\n' "$guest" "$(cat "$state/default.token")" > "$old/etc/hawser/guest.toml"
    within_guest HAWSER_STATS=1 "/opt/bin/$program"
    said=$(grep "^PASS $program" "$work/output") || { result="$program did not print PASS: $(cat "$work/output")"; return 1; }
    within_guest hawser doctor "/opt/bin/$program"
    expect "doctor names the settings' file" grep -q "settings: /etc/hawser/guest.toml" "$work/output"
    within_guest hawser run "/opt/bin/$program"
    expect "workers of the unit's broker are jailed" grep -q "the workers' jail: .*user of its own, no capabilities" "$work/broker.log"
    result=$said
}

upgrade_guest() {
    newer "${deb[guest]}" 9.9
    newer "${deb[guest]}" 9.9.1
    cp "$work"/newer/hawser-guest_*.deb "$old/tmp/"
    cp "$old/etc/hawser/guest.toml" "$work/edited"
    quietly within "$old" dpkg -i /tmp/hawser-guest_9.9_amd64.deb
    expect "an upgrade keeps an edited configuration" cmp -s "$work/edited" "$old/etc/hawser/guest.toml"
    quietly within "$old" hawser libraries status
    quietly within "$old" hawser libraries off
    quietly within "$old" dpkg -i /tmp/hawser-guest_9.9.1_amd64.deb
    expect "an upgrade keeps the libraries disabled" not quietly within "$old" hawser libraries status
    quietly within "$old" hawser libraries on
    quietly within "$old" dpkg -r hawser-guest
    expect "the linker knows no removed libraries" not linker_knows "$old" hawser
    expect "removing keeps the configuration" cmp -s "$work/edited" "$old/etc/hawser/guest.toml"
    quietly within "$old" dpkg -P hawser-guest
    rm -f "$old"/tmp/*.deb
    picture "$old" > "$work/old.after"
    compare_pictures "$work/old.before" "$work/old.after" "hawser-guest"
}

# Prints the file of the driver that programs on Debian 11 find.
driver() { within "$old" ldconfig -p | sed -n 's/.*libcuda.so.1 .*=> //p' | sed -n 1p; }

# Another vendor's driver is in the distribution's place.
beside_other_driver() {
    local theirs=/usr/lib/x86_64-linux-gnu/libcuda.so.1
    echo 'int cuInit(unsigned flags) { (void) flags; return 0; }' |
        gcc -shared -fPIC -Wl,-soname,libcuda.so.1 -x c -o "$work/libcuda.so.1" -
    cp "$work/libcuda.so.1" "$old$theirs"
    within "$old" ldconfig
    install_deb
    expect "the installation reports the other driver" grep -q "libcuda.so.1 of its own, which programs go on using" "$work/output"
    expect "programs keep using an existing driver" test "$(readlink -f "$old$(driver)")" = "$(readlink -f "$old$theirs")"
    quietly within "$old" hawser libraries on
    expect "when enabled, Hawser's library comes first" test "$(driver)" = /usr/lib/hawser/guest/libcuda.so.1
    quietly within "$old" dpkg -P hawser-guest
    expect "when disabled, the other driver is in use again" test "$(readlink -f "$old$(driver)")" = "$(readlink -f "$old$theirs")"
    expect "the other driver is unchanged" cmp -s "$work/libcuda.so.1" "$old$theirs"
}
