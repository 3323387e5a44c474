# Waits until somebody listens on a port, which is given in hexadecimal digits. POSIX sh.
tries=0
while [ "$tries" -lt 50 ]; do
    if grep -qE ":$1 [0-9A-F]+:0000 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null; then
        echo listens
        break
    fi
    tries=$((tries + 1))
    sleep 0.2 2>/dev/null || sleep 1
done
echo end
