# Starts a program beside an engine with the engine's own settings of transports, which never leave the container.
# POSIX sh. Arguments: process of the engine or nothing; seconds; folder of its NIXL package or nothing; what is started;
# NAME=VALUE that hold whatever the engine has. What follows it starts the program with "$@" as its environment.
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
