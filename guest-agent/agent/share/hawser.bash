# Completion of the guest's `hawser` command for bash.
_hawser() {
    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "run smi nvidia-smi doctor libraries preload setup --help --version" -- "$current")
        return
    fi
    case $command in
        smi)
            mapfile -t COMPREPLY < <(compgen -W "dmon -L --list-gpus -q --query -d --display -x --xml-format --query-gpu=
                --query-compute-apps= --format=csv --format=csv,noheader --format=csv,noheader,nounits -i --id -l --loop
                -lms --loop-ms -f --filename --json --version --help --help-query-gpu --help-query-compute-apps" -- "$current")
            ;;
        nvidia-smi) mapfile -t COMPREPLY < <(compgen -W "on off status --root --help" -- "$current") ;;
        run)
            if [ "$COMP_CWORD" -gt 2 ] && declare -F _command_offset >/dev/null; then
                _command_offset 2 # the program's own completion
            else
                mapfile -t COMPREPLY < <(compgen -c -A file -- "$current")
            fi
            ;;
        libraries) mapfile -t COMPREPLY < <(compgen -W "on off auto status --root --help" -- "$current") ;;
        preload) mapfile -t COMPREPLY < <(compgen -W "on off status --root --help" -- "$current") ;;
        setup) mapfile -t COMPREPLY < <(compgen -W "--print --wait --group --root --help" -- "$current") ;;
        doctor) mapfile -t COMPREPLY < <(compgen -c -A file -- "$current") ;;
    esac
}
complete -F _hawser hawser
