# Counters of this network namespace and of the RDMA ports of the machine, and of KV in the engine's metrics at the ports
# that are given; reads only. POSIX sh.
metrics=$*
IFS= read -r up </proc/uptime && echo "time ${up%% *}"
while IFS= read -r line; do
    case $line in
        *:*)
            name=${line%:*}
            set -f
            IFS=' '
            # shellcheck disable=SC2086
            set -- ${line##*:}
            [ $# -ge 16 ] && echo "net ${name##* } $1 $9"
            ;;
    esac
done </proc/net/dev
set +f
for port in /sys/class/infiniband/*/ports/*; do
    [ -d "$port" ] || continue
    device=${port#/sys/class/infiniband/}
    for file in counters/port_xmit_data counters/port_rcv_data hw_counters/tx_bytes hw_counters/rx_bytes \
        hw_counters/rdma_read_bytes hw_counters/rdma_read_resp_bytes hw_counters/rdma_write_bytes \
        hw_counters/rdma_write_recv_bytes hw_counters/sent_pkts hw_counters/rcvd_pkts; do
        [ -r "$port/$file" ] && read -r value <"$port/$file" && echo "port ${device%%/*}:${port##*/} ${file#*/} $value"
    done
done 2>/dev/null
page() { # PORT
    # One that is there need not work.
    curl -fs -m 3 --noproxy '*' "http://127.0.0.1:$1/metrics" ||
        python3 -c 'import sys, urllib.request as u
print(u.build_opener(u.ProxyHandler({})).open("http://127.0.0.1:%s/metrics" % sys.argv[1], timeout=3).read(8 << 20).decode())' "$1" ||
        no_proxy='*' wget -q -T 3 -O - "http://127.0.0.1:$1/metrics"
}
IFS=' '
for port in $metrics; do
    page "$port" | grep -E '^(agent_[rt]x_bytes(_total)?|vllm:nixl_bytes_transferred_sum)[{ ]' | while IFS= read -r line; do
        echo "metric $port ${line%%[\{ ]*} ${line##* }"
    done
done 2>/dev/null
echo end
