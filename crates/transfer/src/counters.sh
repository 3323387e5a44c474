# Counters of this network namespace and of the RDMA ports of the machine; reads only. POSIX sh.
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
echo end
