# shellcheck shell=bash disable=SC2015,SC2034,SC2154 # variables of ansible/test
# The controller of the lane `ansible`: its files, and runs of the playbook. Sourced by ansible/test.

# Makes the files of the controller: certificates, a password, the inventory.
make_files() {
    local files=$work/files
    mkdir "$files"
    in_order make_certificates
    openssl rand -hex 16 > "$files/password"
    write_inventory 512M 50 1
}

make_certificates() {
    cd "$work/files" || return
    make_authority ca
    make_certificate ca broker DNS:gpu1.example 30
}

# Writes the inventory with memory $1 and share $2 of the vGPU, and $3 ready workers.
write_inventory() {
    cat > "$work/inventory.yml" <<YAML
---
all:
  vars:
    ansible_user: root
    ansible_ssh_private_key_file: $work/key
    ansible_ssh_common_args: -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR
    ansible_python_interpreter: /usr/bin/python3
    packages_dir: $packages
    broker_tokens_dir: $work/tokens
    broker_gpu_backend: software
    broker_pool_size: $3
  children:
    brokers:
      hosts:
        gpu1.example:
          broker_certificate_src: $work/files/broker.pem
          broker_key_src: $work/files/broker.key
          broker_ca_src: $work/files/ca.pem
          broker_listen_tls_host: 0.0.0.0
          broker_listen_tls_port: 7656
          broker_http_host: gpu1.example
          broker_settings:
            hawser.turns.mode: "on"
          broker_users:
            - {name: alice, role: operator, password: "{{ lookup('ansible.builtin.file', '$work/files/password') }}"}
          broker_vgpus:
            - name: research1
              memory: $1
              share: $2
              owner: host:remote.example
              carriers: [tcp]
              tokens:
                - {note: remote.example, expires: 30d}
            - {name: default, state: absent}
        el9.example:
          broker_max_sessions: 7
    hypervisors:
      hosts:
        gpu1.example:
          hypervisor_libvirt_packages: []
          hypervisor_guest_broker: tls://gpu1.example
          hypervisor_guest_ca_file: /etc/hawser/ca.pem
          hypervisor_settings: {region.mode: "0600"}
        el9.example:
    guests:
      vars:
        guest_broker: tls://gpu1.example
        guest_ca_src: $work/files/ca.pem
        guest_token_src: $work/tokens/research1.token
        guest_libraries: "on"
        guest_verify: true
        packages_repository_key_src: $work/files/signer.asc
        packages_state: latest
      hosts:
        remote.example:
          packages_source: repository
          packages_repository: $server/apt stable main
        el9.example:
          # The packages of the machine's other roles come from files.
          packages_source: "{{ ('guest' in ansible_role_names) | ternary('repository', 'files') }}"
          packages_repository: $server/rpm
YAML
}

# Runs site.yml, or $playbook, with the arguments $2...; its output is in $work/$1.log.
play() {
    local log=$work/$1.log
    shift
    (cd "$root/ansible" && HOME=$work ANSIBLE_NOCOLOR=1 \
        timeout 3600 ansible-playbook -i "$work/inventory.yml" "$@" "${playbook:-site.yml}") > "$log" 2>&1 ||
        { result=$(tail -n 40 "$log"); return 1; }
    result=$(sed -n 's/^\([a-z0-9.]*\) *: ok=\([0-9]*\) *changed=\([0-9]*\).*/\1 \3 of \2/p' "$log" |
        paste -sd, | sed 's/,/, /g')
}

# Runs the playbook with log $1; it must change nothing.
unchanged() {
    play "$@"
    [ "$(grep -c ': ok=.*changed=0 .*unreachable=0 .*failed=0' "$work/$1.log")" = 3 ] ||
        { result="$result: $(grep -B1 '^changed:' "$work/$1.log" | head -n 20)"; return 1; }
}

lint() { (cd "$root/ansible" && HOME=$work exec ansible-lint --nocolor --offline) > "$work/lint.log" 2>&1; }
check_lint() {
    wait "$linter" || { result=$(cat "$work/lint.log"); return 1; }
    result=$(tail -n 1 "$work/lint.log")
}
