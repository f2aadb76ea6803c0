_nicpin() {
    local words=("${COMP_WORDS[@]:0:COMP_CWORD+1}")
    mapfile -t COMPREPLY < <(NICPIN_COMPLETE=bash nicpin -- "$2" "${words[@]}" 2> /dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:/] ]]; then
        compopt -o nospace
    elif [[ ${#COMPREPLY[@]} == 0 && " ${words[*]} " == *" -- "* ]]; then
        compopt -o bashdefault -o default
    fi
}
complete -o nosort -F _nicpin nicpin
