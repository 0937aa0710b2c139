# shellcheck shell=bash disable=SC2034,SC2154 # variables of ../test
# The steps of the lane `packages` with the .rpm packages. Sourced by ../test.

repository_dnf() {
    quietly env LC_ALL=C.UTF-8 dnf --quiet --assumeyes --installroot="$work/dnf" --releasever=9 --setopt=reposdir=/nonexistent \
        --setopt=cachedir="$work/dnfcache" --setopt=logdir="$work/dnflog" --repofrompath="hawser,file://$repository" --repo=hawser \
        --nogpgcheck --setopt=tsflags=noscripts "$@"
}

install_by_dnf() {
    local rpm_version file left
    repository=$work/repository
    mkdir -p "$repository" "$work/dnflog"
    cp "$packages"/*.rpm "$repository/"
    cat > "$work/stand-in.spec" <<'SPEC'
Name: stand-in
Version: 1
Release: 1
Summary: Packages of a distribution
License: none
Provides: glibc(x86-64) = 2.34, /bin/sh, bash, shadow-utils, libvirt-libs, curl
%description
Stands for packages of a distribution, by name.
%files
SPEC
    quietly rpmbuild -bb --quiet --define "_topdir $work/rpmbuild" --define "_rpmdir $repository" "$work/stand-in.spec"
    quietly createrepo_c --quiet "$repository"
    rpm_version=$(rpm -qp --queryformat '%{VERSION}' "$packages"/hawser-guest-*.rpm 2> /dev/null)
    expect "a version of the tree sorts before the release in RPM, too" \
        test "$(rpm --eval "%{lua: print(rpm.vercmp('$rpm_version', '${rpm_version%%~*}'))}")" = -1
    repository_dnf install hawser-guest hawser-broker hawser-hypervisor hawser-slurm
    expect "the broker's package suggests perftest" grep -qx perftest <<< "$(rpm -qp --suggests "$packages"/hawser-broker-*.rpm 2> /dev/null)"
    for file in usr/lib/hawser/guest/libcuda.so.1 usr/lib/hawser/runtime/bin/java usr/bin/hawser-broker usr/bin/hawser-fabric \
        etc/libvirt/hooks/qemu.d/50-hawser usr/lib/hawser/slurm/prolog; do
        expect "dnf has installed $file" test -e "$work/dnf/$file"
    done
    expect "Java is executable" test -x "$work/dnf/usr/lib/hawser/runtime/lib/jspawnhelper"
    repository_dnf remove 'hawser-*'
    left=$(cd "$work/dnf" && find usr etc -name '*hawser*')
    [ -z "$left" ] || { result="dnf left behind: $left"; return 1; }
}

with_rpm() { quietly rpm --root "$new" --dbpath /tmp/rpmdb "$@"; }

install_by_rpm() {
    local name driver
    rm -rf "$new/var/lib/hawser"
    # Folders of an rpm distribution and of its libvirt.
    mkdir -p "$new/usr/lib/sysusers.d" "$new/usr/share/zsh/site-functions" "$new/etc/libvirt/hooks"
    picture "$new" > "$work/new.before"
    mkdir -p "$new/tmp/rpmdb"
    with_rpm -i "$repository"/x86_64/stand-in-*.rpm
    with_rpm -i "$packages"/hawser-*.rpm
    quietly within "$new" hawser libraries status
    expect "the linker knows the guest's libcuda.so.1" linker_knows "$new" 'libcuda.so.1 .*=> /usr/lib/hawser/guest/'
    for name in hawser-broker hawserctl hawserd; do
        quietly within "$new" $name --version
    done
    quietly within "$new" hawser-fabric --help
    for driver in qemu libxl; do
        expect "the hook is executable" test -x "$new/etc/libvirt/hooks/$driver.d/50-hawser"
    done
    hawser_gid=$(within "$new" id -g hawser)
    expect_conf "broker.conf is root's and the broker's alone" "640 0 $hawser_gid"
    echo "# edited" >> "$new/etc/hawser/guest.toml"
    with_rpm -U --force "$packages"/hawser-guest-*.rpm
    expect "an upgrade keeps an edited configuration" grep -q "^# edited" "$new/etc/hawser/guest.toml"
    with_rpm -V hawser-common hawser-broker hawser-hypervisor hawser-slurm
    echo "# edited" >> "$new/etc/hawser/broker.conf"
    chmod 0644 "$new/etc/hawser/broker.conf"
    chown 0:0 "$new/etc/hawser/broker.conf"
    with_rpm -U --force "$packages"/hawser-broker-*.rpm
    expect "an upgrade keeps an edited broker.conf" grep -q "^# edited" "$new/etc/hawser/broker.conf"
    expect_conf "an upgrade takes broker.conf from other users" "640 0 $hawser_gid"
    with_rpm -e hawser-guest hawser-broker hawser-hypervisor hawser-slurm hawser-common
    rm -f "$new"/etc/hawser/{guest.toml,broker.conf}.rpmsave
    rmdir "$new/etc/hawser" 2> /dev/null || true
    nothing_but_the_user "the .rpm packages"
}
