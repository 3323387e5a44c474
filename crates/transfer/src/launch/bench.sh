# What is started is a command line, one word to a line; nothing is a pattern, and IFS is a newline. It ends with
# standard input, and how it ended is said.
case $boot in
    *--etcd_endpoints) boot="$boot
${NIXL_ETCD_ENDPOINTS:-$ETCD_ENDPOINTS}" ;;
esac
limited=
if command -v timeout >/dev/null 2>&1; then
    limited="timeout
-k
5
$limit"
fi
exec 3<&0
# shellcheck disable=SC2086
env -i "$@" $limited $boot </dev/null 3<&- &
bench=$!
{
    while read -r word; do :; done
    kill "$bench"
} <&3 >/dev/null 2>&1 &
watch=$!
exec 3<&-
wait "$bench"
code=$?
kill "$watch" 2>/dev/null
echo "check-interconnect: nixlbench ended with $code"
