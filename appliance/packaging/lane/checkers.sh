# shellcheck shell=bash disable=SC2034,SC2154 # variables of ../test
# The steps of the lane `packages` that run the distributions' checkers. Sourced by ../test.

# Runs step $3 with the function $4, or skips it: $1 says whether its program is there, $2 names its package.
check_with() {
    if "$1"; then
        step checkers "$3" "$4"
    else
        step_skipped checkers "$3" "$2"
    fi
}

check_packages() {
    check_with has_analyze "install systemd" "systemd-analyze finds no fault in the units" verify_units
    check_with has_offline_security "systemd-analyze of systemd 250 is missing" \
        "systemd-analyze confirms that the broker's unit denies @raw-io and @mount" judge_unit
    check_with has_udev_verify "udevadm of systemd 254 is missing" "udevadm finds no fault in the rule" verify_rule
    check_with has_lintian "install lintian" "lintian reports only what appliance/packaging/lintian explains" run_lintian
    check_with has_rpmlint "install rpmlint" "rpmlint reports only what appliance/packaging/rpmlint.toml explains" run_rpmlint
}

has_analyze() { has systemd-analyze; }
has_offline_security() { has_analyze && systemd-analyze security --help 2> /dev/null | grep -q -e --offline; }
has_udev_verify() { has udevadm && udevadm verify --help > /dev/null 2>&1; }
has_lintian() { has lintian; }
has_rpmlint() { has rpmlint; }

verify_units() {
    local name file
    for name in guest broker hypervisor slurm; do
        rm -rf "$work/unit"
        dpkg-deb -x "${deb[$name]}" "$work/unit"
        for file in "$work"/unit/lib/systemd/system/*.service; do
            [ "$(basename "$file")" != hawser-broker.service ] || cp "$file" "$work/hawser-broker.service"
            # The unit's program is not installed on this machine.
            sed -i 's,^\(Exec[A-Za-z]*=[-+]*\)[^ ]*,\1/bin/true,' "$file"
            quietly systemd-analyze --man=no verify "$file"
            expect "no warning about $(basename "$file")" not grep "$(basename "$file")" "$work/output"
        done
    done
}

judge_unit() {
    judge "$work/whole" cat
    expect "the unit denies raw I/O" grep -q '✓ SystemCallFilter=~@raw-io ' "$work/judgement"
    judge "$work/less" grep -v '^SystemCallFilter=chroot$'
    expect "the unit denies mounting except for chroot" grep -q '✓ SystemCallFilter=~@mount ' "$work/judgement"
}
# Writes the judgement on the broker's unit, filtered by the command $2..., with folder $1 for that unit.
judge() {
    mkdir "$1"
    "${@:2}" "$work/hawser-broker.service" > "$1/hawser-broker.service"
    systemd-analyze security --offline=true --no-pager "$1/hawser-broker.service" > "$work/judgement"
}

verify_rule() {
    dpkg-deb -x "${deb[guest]}" "$work/rule"
    quietly udevadm verify "$work"/rule/lib/udev/rules.d/*.rules
}

run_lintian() {
    quietly lintian --fail-on error,warning --suppress-tags-from-file "$root/appliance/packaging/lintian" "$packages"/*.deb
}

# rpmlint fails on errors; this step also fails on warnings without a reason.
run_rpmlint() {
    quietly rpmlint -c "$root/appliance/packaging/rpmlint.toml" "$packages"/*.rpm
    expect "no error or warning" not grep -E '^[^ ]+: [EW]: ' "$work/output"
    expect "rpmlint has read all packages" grep -q ' 5 packages and 0 specfiles checked; 0 errors, 0 warnings' "$work/output"
}
