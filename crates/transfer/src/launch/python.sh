# What is started reads the program from standard input.
program=
# Its bindings fit its own interpreter; without them the first one of its path does as well as any.
if [ -n "$pid" ] && { [ -n "$site" ] || ! command -v python3 >/dev/null 2>&1; }; then
    program=$(readlink "/proc/$pid/exe" 2>/dev/null)
    case ${program##*/} in
        python* | pypy*) [ -x "$program" ] || program= ;;
        *) program= ;;
    esac
fi
[ -n "$program" ] || program=python3
if command -v timeout >/dev/null 2>&1; then
    exec env -i "$@" timeout -k 5 "$limit" "$program" -u -c "$boot"
fi
exec env -i "$@" "$program" -u -c "$boot"
