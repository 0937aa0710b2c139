# shellcheck shell=bash disable=SC2015,SC2034,SC2154 # variables of ansible/test
# The repositories of packages of the lane `ansible`. Sourced by ansible/test.

sign() { gpg --homedir "$work/gnupg" --batch --quiet --yes "$@"; }

# Makes the key $1, and its public half for the controller.
make_signer() {
    sign --passphrase '' --quick-generate-key "$1@example" rsa3072 sign never
    sign --armor --export "$1@example" > "$work/files/$1.asc"
}

# Makes the repository for apt from its folder pool.
publish_apt() {
    local list=main/binary-amd64/Packages
    cd "$work/repository/apt" || return
    mkdir -p "dists/stable/${list%/*}"
    dpkg-scanpackages --multiversion pool > "dists/stable/$list"
    cd dists/stable || return
    printf '%s: %s\n' Suite stable Codename stable Components main Architectures amd64 Date "$(date -uR)" > Release
    printf 'SHA256:\n %s %d %s\n' "$(sha256sum < "$list" | cut -d' ' -f1)" "$(stat -c %s "$list")" "$list" >> Release
    sign --local-user signer@example --clearsign --output InRelease Release
}

# Makes the guest package with a version above all others, for apt.
publish_newer_apt() {
    dpkg-deb -R "${debs[0]}" "$work/newer"
    sed -i "s/^Version: .*/Version: $newer/" "$work/newer/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$work/newer" "$work/repository/apt/pool/"
    publish_apt
}

# The same for dnf, with the same files.
publish_newer_rpm() {
    cat > "$work/newer.spec" <<SPEC
%global debug_package %{nil}
%global __os_install_post %{nil}
Name: hawser-guest
Version: $newer
Release: 1
Summary: A newer guest package
License: none
AutoReqProv: no
%description
A newer guest package.
%install
cp -a $work/newer/usr %{buildroot}/
install -D -m 644 $work/newer/etc/hawser/guest.toml %{buildroot}/etc/hawser/guest.toml
%files
/usr/bin/hawser
/usr/lib/hawser/guest
/usr/share
%config(noreplace) /etc/hawser/guest.toml
SPEC
    rpmbuild -bb --define "_topdir $work/rpmbuild" --define "_rpmdir $work/newer-rpm" "$work/newer.spec"
    cp "$work"/newer-rpm/x86_64/*.rpm "$work/repository/rpm/"
    publish_rpm
}

# Makes the repository for dnf from its folder.
publish_rpm() {
    rpmsign --addsign --define "_gpg_name signer@example" --define "_gpg_path $work/gnupg" \
        --define "__gpg $(command -v gpg)" "$work"/repository/rpm/*.rpm
    createrepo_c "$work/repository/rpm"
}

# Empty packages that stand for EL 9's.
publish_el9() {
    cat > "$work/el9.spec" <<'SPEC'
Name: el9
Version: 1
Release: 1
Summary: Packages of a distribution
License: none
Provides: glibc(x86-64) = 2.34, /bin/sh, shadow-utils, curl
%description
Stands for packages of a distribution, by name.
%files
%package -n openssl
Summary: By name
%description -n openssl
By name.
%files -n openssl
%package -n libvirt-libs
Summary: By name
%description -n libvirt-libs
By name.
%files -n libvirt-libs
%package -n libvirt-daemon-kvm
Summary: By name
Requires: libvirt-libs
%description -n libvirt-daemon-kvm
By name.
%files -n libvirt-daemon-kvm
SPEC
    rpmbuild -bb --define "_topdir $work/rpmbuild" --define "_rpmdir $work/repository/el9" "$work/el9.spec"
    createrepo_c "$work/repository/el9"
}

serve_repositories() {
    install -d -m 700 "$work/gnupg"
    mkdir -p "$work"/repository/{apt/pool,rpm,el9}
    cp "${debs[0]}" "$work/repository/apt/pool/"
    cp "$packages"/hawser-guest-[0-9]*.x86_64.rpm "$work/repository/rpm/"
    in_order make_signer signer
    in_order make_signer stranger
    in_order publish_apt
    in_order publish_rpm
    in_order publish_el9
    python3 -m http.server --bind 10.78.0.254 --directory "$work/repository" "${server##*:}" > "$work/server.log" 2>&1 &
    await_quietly 300 on remote.example "exec 3<> /dev/tcp/10.78.0.254/${server##*:}"
    result="signed, for apt and dnf"
}
