# Starts the program beside an engine with the engine's own settings of transports, which never leave the container.
# POSIX sh. Arguments: process of the engine or nothing; seconds; folder of its NIXL package or nothing; what reads the
# program from standard input; NAME=VALUE that hold whatever the engine has.
pid=$1 limit=$2 site=$3 boot=$4
shift 4
forced=' '
for word in "$@"; do
    forced="$forced${word%%=*} "
done
# Not self: what opens it there is replaced by the one that reads it.
from=/proc/$$/environ
{ [ -n "$pid" ] && true <"/proc/$pid/environ"; } 2>/dev/null && from=/proc/$pid/environ
held=
set -f
IFS='
'
# A variable ends with NUL and may hold newlines: swapping both leaves one variable to a line.
for word in $(tr '\000\n' '\n\001' <"$from" 2>/dev/null); do
    name=${word%%=*}
    case $name in
        '' | "$word" | *[!A-Za-z0-9_]*) continue ;;
        @LEFT_OUT@) continue ;;
        @HANDED_ON@) ;;
        *) continue ;;
    esac
    case $forced in
        *" $name "*) continue ;;
    esac
    case $word in
        PYTHONPATH=*)
            held=yes
            [ -z "$site" ] || word="PYTHONPATH=$site:${word#*=}"
            ;;
    esac
    set -- "$@" "$word"
done
[ -z "$site" ] || [ -n "$held" ] || set -- "$@" "PYTHONPATH=$site"
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
