#!/bin/sh
# Prints facts about RDMA, GPUs and the KV transfer engine of this host or container; judges nothing.
#
#   sh -s -- [root=DIR] [path=DIR] [limit=SECONDS] [tool_limit=SECONDS] [tools=no] [sockets=yes] [watch=yes]
#
# What it prints is described in stream.rs. It reads /sys, /dev and /proc first and runs tools after that, each only
# where its kernel modules are loaded already, because several tools load them. It writes no file, loads no module and
# needs neither a writable root nor /tmp: no here-documents, which some shells keep in a file. Values of variables and
# flags that are not on the lists below never leave it; the @NAMES@ are filled in from the catalogue.
#
# For dash, busybox sh and bash. Nearly everything is a builtin, because a fork costs more than all the rest. Nothing
# runs before the last line has arrived.

NL='
'
TEXT_LIMIT=4096
TOOL_OUTPUT=262144

# ---------------------------------------------------------------- the stream

# All variables of a shell without `local` are global: those of these helpers begin with `_`.

put() { # KIND KEY TEXT
	n=$((n + 1))
	printf '%%%d\t%s\t%s\t%.4096s\t%%\n' "$n" "$1" "$2" "$3"
	if [ "${#3}" -gt "$TEXT_LIMIT" ]; then
		n=$((n + 1))
		printf '%%%d\tcut\t%s\ttext\t%%\n' "$n" "$2"
	fi
}

why_not() { # PATH: says why a file gave nothing
	if [ ! -e "$R$1" ]; then
		put none "$1" absent
	elif { true <"$R$1"; } 2>/dev/null; then
		put none "$1" unreadable
	else
		put none "$1" denied
	fi
}

file() { # PATH...: the first line of each
	for _path in "$@"; do
		_text=
		if { IFS= read -r _text <"$R$_path"; } 2>/dev/null || [ -n "$_text" ]; then
			put file "$_path" "$_text"
		else
			why_not "$_path"
		fi
	done
}

some() { # DIR NAME...: the first line of those files that are there
	_dir=$1
	shift
	for _name in "$@"; do
		[ -e "$R$_dir/$_name" ] && file "$_dir/$_name"
	done
}

lines() { # PATH MAX: the lines of a file
	_left=$2
	if ! { true <"$R$1"; } 2>/dev/null; then
		why_not "$1"
		return
	fi
	while _text= && { IFS= read -r _text || [ -n "$_text" ]; }; do
		if [ "$_left" -eq 0 ]; then
			put cut "$1" lines
			break
		fi
		_left=$((_left - 1))
		put file "$1" "$_text"
	done 2>/dev/null <"$R$1"
}

# The directory that a path leads to, into $real; without a fork.
resolve() { # PATH
	real=
	[ -d "$R$1" ] || return 1
	CDPATH='' cd -P "$R$1" 2>/dev/null || return 1
	real=${PWD#"$R"}
	cd / || return 1
}

link() { # PATH: where it leads
	resolve "$1" && put link "$1" "$real"
}

# Names come from the kernel, but nothing keeps a device from having an odd one.
odd() { # NAME
	case $1 in
	'' | '*' | *[!A-Za-z0-9_.:@+,=-]*) return 0 ;;
	esac
	return 1
}

list() { # KIND PATTERN...: paths that exist; at most 256. A root with blanks is not supported.
	_kind=$1
	shift
	_found=0
	for _pattern in "$@"; do
		for _entry in $R$_pattern; do
			[ -e "$_entry" ] || [ -L "$_entry" ] || continue
			_found=$((_found + 1))
			if [ "$_found" -gt 256 ]; then
				put cut "$_kind" entries
				return
			fi
			put list "$_kind" "${_entry#"$R"}"
		done
	done
}

# Whether this process may use a device node. It is opened only where that has no effect: never a GPU (that wakes it
# up) nor issm (that announces a subnet manager).
node() { # PATH [open]
	if [ ! -e "$R$1" ]; then
		put node "$1" absent
		return
	fi
	# Only what is a device: `<>` creates a file that is not there.
	if [ ! -c "$R$1" ] && { [ -z "$R" ] || [ ! -f "$R$1" ]; }; then
		put node "$1" 'not a device'
	elif [ "${2-}" = open ]; then
		if { true 3<>"$R$1"; } 2>/dev/null; then
			put node "$1" opened
		else
			# The reason is in the shell's message only.
			_text=$({ true 3<>"$R$1"; } 2>&1)
			put node "$1" "failed: ${_text##*: }"
		fi
	elif [ -r "$R$1" ] && [ -w "$R$1" ]; then
		put node "$1" accessible
	else
		put node "$1" inaccessible
	fi
}

# ---------------------------------------------------------------- the system

system() {
	put stage system ''
	file /proc/sys/kernel/osrelease /proc/sys/kernel/hostname /proc/sys/kernel/random/boot_id /proc/uptime
	some /proc/sys/kernel arch yama/ptrace_scope
	[ -e "$R/.dockerenv" ] && put list container /.dockerenv
	[ -e "$R/run/.containerenv" ] && put list container /run/.containerenv
	[ -d "$R/var/run/secrets/kubernetes.io" ] && put list container /var/run/secrets/kubernetes.io
	[ -n "${KUBERNETES_SERVICE_HOST-}" ] && put list container KUBERNETES_SERVICE_HOST
	some /proc/1 comm
	virtual
	lines /proc/self/limits 32
	status self
	lines /proc/1/cgroup 32
	lines /proc/self/cgroup 32
	cgroups
	while IFS= read -r v; do
		case $v in
		MemTotal:* | MemAvailable:* | HugePages_Total:* | HugePages_Free:* | Hugepagesize:*) put file /proc/meminfo "$v" ;;
		esac
	done 2>/dev/null <"$R/proc/meminfo"
	# Other words of the kernel's command line are nobody's business.
	v=
	{ IFS= read -r v <"$R/proc/cmdline"; } 2>/dev/null
	set -f
	for word in $v; do
		case $word in
		iommu=* | intel_iommu=* | amd_iommu=* | iommu.passthrough=* | pci=* | default_hugepagesz=* | hugepages=* | hugepagesz=*)
			put file /proc/cmdline "$word"
			;;
		esac
	done
	set +f
	for f in "$R"/sys/kernel/iommu_groups/*; do
		[ -e "$f" ] && put list iommu "${f#"$R"}"
		break
	done
	while read -r v word; do
		case $word in
		nvidia* | gdrdrv | infiniband* | neuron | davinci* | kfd | habanalabs | accel) put file /proc/devices "$v $word" ;;
		esac
	done 2>/dev/null <"$R/proc/devices"
}

# Signs of a virtual machine: what the firmware says of the board, and the word that processors of x86 have in a guest.
virtual() {
	some /sys/class/dmi/id sys_vendor product_name
	while IFS= read -r v; do
		case $v in
		flags*)
			case "$v " in
			*' hypervisor '*) put file /proc/cpuinfo 'flags: hypervisor' ;;
			*) put file /proc/cpuinfo 'flags: none of a guest' ;;
			esac
			break
			;;
		# Processors of other makers have no such word.
		Features* | BogoMIPS*) break ;;
		esac
	done 2>/dev/null <"$R/proc/cpuinfo"
}

status() { # PID
	while IFS= read -r _text; do
		case $_text in
		Name:* | State:* | PPid:* | Uid:* | NSpid:* | CapEff:* | CapBnd:* | Cpus_allowed_list:* | Mems_allowed_list:*) put file "/proc/$1/status" "$_text" ;;
		esac
	done 2>/dev/null <"$R/proc/$1/status"
}

cgroups() {
	# The own group first; in a container it is the root of what can be seen.
	while IFS=: read -r v word own; do
		base=
		case $v:$word in
		0:)
			for base in "/sys/fs/cgroup$own" /sys/fs/cgroup; do
				[ -e "$R$base/cgroup.controllers" ] || continue
				some "${base%/}" cpu.max memory.max memory.current pids.max pids.current cpuset.cpus.effective
				[ -e "$R${base%/}/rdma.max" ] && lines "${base%/}/rdma.max" 64
				[ -e "$R$base/memory.max" ] && break
			done
			;;
		*)
			case ,$word, in
			*,cpu,*) for base in "/sys/fs/cgroup/$word$own" /sys/fs/cgroup/cpu; do
				[ -e "$R$base/cpu.cfs_quota_us" ] && some "${base%/}" cpu.cfs_quota_us cpu.cfs_period_us && break
			done ;;
			*,memory,*) for base in "/sys/fs/cgroup/memory$own" /sys/fs/cgroup/memory; do
				[ -e "$R$base/memory.limit_in_bytes" ] && some "${base%/}" memory.usage_in_bytes memory.limit_in_bytes && break
			done ;;
			*,pids,*) for base in "/sys/fs/cgroup/pids$own" /sys/fs/cgroup/pids; do
				[ -e "$R$base/pids.max" ] && some "${base%/}" pids.current pids.max && break
			done ;;
			esac
			;;
		esac
	done 2>/dev/null <"$R/proc/self/cgroup"
}

modules() {
	put stage modules ''
	if ! { true <"$R/proc/modules"; } 2>/dev/null; then
		why_not /proc/modules
	fi
	while read -r name v; do
		case $name in
		ib_* | iw_cm | rdma_* | rdmavt | mlx4_* | mlx5_* | efa | efa_nv_peermem | bnxt_re | irdma | mana_ib | siw | hfi1 | \
			erdma | hns_roce* | qedr | ocrdma | xpmem | nvidia* | nv_peer_mem | gdrdrv | amdgpu | i915 | xe | habanalabs | \
			neuron | drv_davinci* | bonding | knem | cxi_*)
			put file /proc/modules "$name $v"
			;;
		esac
	done 2>/dev/null <"$R/proc/modules"
	for name in nvidia nvidia_peermem nv_peer_mem nvidia_fs gdrdrv mlx5_core mlx5_ib ib_core efa efa_nv_peermem amdgpu \
		neuron habanalabs; do
		[ -d "$R/sys/module/$name" ] || continue
		put list module "/sys/module/$name"
		some "/sys/module/$name" version srcversion refcnt taint
	done
	for v in "$R"/sys/kernel/mm/memory_peers/*/version; do
		[ -e "$v" ] && file "${v#"$R"}"
	done
}

# ---------------------------------------------------------------- GPUs, without their tools

gpus() {
	put stage gpus ''
	if [ -e "$R/proc/driver/nvidia/version" ]; then
		lines /proc/driver/nvidia/version 8
		while IFS= read -r v; do
			case $v in
			EnableStreamMemOPs:* | RegistryDwords:* | RegistryDwordsPerDevice:* | ImexChannelCount:* | CreateImexChannel0:* | \
				NvLinkDisable:* | EnablePCIERelaxedOrderingMode:* | OpenRmEnableUnsupportedGpus:* | GrdmaPciTopoCheckOverride:* | \
				EnableGpuFirmware:* | DmaRemapPeerMmio:*)
				put file /proc/driver/nvidia/params "$v"
				;;
			esac
		done 2>/dev/null <"$R/proc/driver/nvidia/params"
		for f in "$R"/proc/driver/nvidia/gpus/*/information; do
			[ -e "$f" ] && lines "${f#"$R"}" 24
		done
	else
		why_not /proc/driver/nvidia/version
	fi
	for f in "$R"/dev/nvidia[0-9]* "$R"/dev/nvidiactl "$R"/dev/nvidia-uvm "$R"/dev/nvidia-nvswitch* "$R"/dev/nvidia-nvlink \
		"$R"/dev/dxg "$R"/dev/kfd "$R"/dev/dri/renderD* "$R"/dev/neuron[0-9]* "$R"/dev/davinci* "$R"/dev/accel/accel[0-9]* \
		"$R"/dev/hl[0-9]*; do
		[ -e "$f" ] && node "${f#"$R"}"
	done
	found=0
	for f in "$R"/dev/nvidia-caps-imex-channels/channel*; do
		[ -e "$f" ] || continue
		found=$((found + 1))
		[ "$found" -le 16 ] && node "${f#"$R"}"
	done
	[ "$found" -gt 16 ] && put cut /dev/nvidia-caps-imex-channels entries
	node /dev/gdrdrv open
	some /proc/driver/gdrdrv params
	list gdrapi /usr/lib/libgdrapi.so* /usr/lib64/libgdrapi.so* /usr/lib/*-linux-gnu/libgdrapi.so* \
		/usr/local/lib/libgdrapi.so* /usr/local/gdrcopy/lib*/libgdrapi.so* /opt/gdrcopy/lib*/libgdrapi.so*
	list fabricmanager /var/run/nvidia-fabricmanager /run/nvidia-fabricmanager /var/run/nvidia-imex /etc/nvidia-imex/nodes_config.cfg
	some /sys/class/kfd/kfd/topology generation_id
}

# GPUs, NICs, NVSwitches and accelerators on the PCI bus; what is here is the host's, whatever the container was given.
pci() {
	put stage pci ''
	found=0
	for f in "$R"/sys/bus/pci/devices/*; do
		v=
		{ IFS= read -r v <"$f/class"; } 2>/dev/null
		case $v in
		0x0200* | 0x0207* | 0x0280* | 0x0300* | 0x0302* | 0x0380* | 0x0680* | 0x0880* | 0x1200*) ;;
		*) continue ;;
		esac
		class=$v
		v=
		{ IFS= read -r v <"$f/vendor"; } 2>/dev/null
		case $class:$v in
		0x02*) ;;
		*:0x10de | *:0x1002 | *:0x8086 | *:0x1d0f | *:0x19e5 | *:0x1da3) ;;
		*) continue ;;
		esac
		case $class:$v in
		# Bridges and other parts of Intel and AMD have these classes as well.
		0x0680*:0x10de | 0x0880*:0x1d0f) ;;
		0x0680* | 0x0880*) continue ;;
		esac
		found=$((found + 1))
		if [ "$found" -gt 512 ]; then
			put cut /sys/bus/pci/devices entries
			return
		fi
		p=${f#"$R"}
		put file "$p/class" "$class"
		put file "$p/vendor" "$v"
		d=$p
		link "$d"
		link "$d/driver"
		link "$d/physfn"
		some "$d" device subsystem_vendor subsystem_device numa_node
		case $class in
		0x0200*) ;;
		*) some "$d" current_link_speed current_link_width max_link_speed max_link_width ;;
		esac
	done
}

# ---------------------------------------------------------------- interfaces

interfaces() {
	put stage interfaces ''
	found=0
	for f in "$R"/sys/class/net/*; do
		name=${f##*/}
		[ -d "$f" ] || continue
		if odd "$name"; then
			put none /sys/class/net 'odd name'
			continue
		fi
		found=$((found + 1))
		if [ "$found" -gt 512 ]; then
			put cut /sys/class/net entries
			break
		fi
		d=/sys/class/net/$name
		some "$d" operstate mtu type flags
		case $name in
		lo | veth* | cali* | lxc*) continue ;;
		esac
		some "$d" speed addr_assign_type
		link "$d/device"
		link "$d/master"
		[ -d "$f/bonding" ] && some "$d/bonding" mode slaves active_slave
	done
	[ -d "$R/sys/class/net" ] || why_not /sys/class/net
	lines /proc/net/if_inet6 256
	while read -r v own rest; do
		[ "$own" = 00000000 ] && put file /proc/net/route "$v	$own	$rest"
	done 2>/dev/null <"$R/proc/net/route"
}

# IPv4 addresses and networks where there is no `ip`.
addresses() {
	lines /proc/net/route 256
	word=
	left=256
	while read -r v own rest; do
		case $v in
		'|--' | '+--') word=$own ;;
		/32)
			[ "$own $rest" = 'host LOCAL' ] || continue
			put file /proc/net/fib_trie "$word"
			left=$((left - 1))
			[ "$left" -gt 0 ] || break
			;;
		esac
	done 2>/dev/null <"$R/proc/net/fib_trie"
}

# ---------------------------------------------------------------- RDMA

device_nodes() {
	put stage device-nodes ''
	[ -d "$R/dev/infiniband" ] || why_not /dev/infiniband
	some /sys/class/infiniband_verbs abi_version
	node /dev/infiniband/rdma_cm open
	for f in "$R"/sys/class/infiniband_verbs/uverbs*; do
		[ -e "$f/ibdev" ] || continue
		p=${f#"$R"}
		file "$p/ibdev"
		# Those without a node: the device was not given to this container.
		[ -e "$R/dev/infiniband/${f##*/}" ] || node "/dev/infiniband/${f##*/}"
	done
	for f in "$R"/dev/infiniband/uverbs*; do
		[ -e "$f" ] && node "${f#"$R"}" open
	done
	for f in "$R"/sys/class/infiniband_mad/umad*; do
		[ -e "$f/ibdev" ] && file "${f#"$R"}/ibdev" "${f#"$R"}/port"
	done
	for f in "$R"/dev/infiniband/umad*; do
		[ -e "$f" ] && node "${f#"$R"}"
	done
}

# Some of these reads ask the device's firmware. One that does not answer holds this process, and nothing can end it:
# hence after everything that does not, and each device is named before it is read.
rdma() {
	put stage rdma ''
	if [ ! -d "$R/sys/class/infiniband" ]; then
		why_not /sys/class/infiniband
		return
	fi
	put list rdma /sys/class/infiniband
	for f in "$R"/sys/class/infiniband/*; do
		[ -d "$f" ] || continue
		name=${f##*/}
		if odd "$name"; then
			put none /sys/class/infiniband 'odd name'
			continue
		fi
		D=/sys/class/infiniband/$name
		put stage "rdma:$name" ''
		put list rdma "$D"
		file "$D/node_type" "$D/node_guid" "$D/fw_ver"
		some "$D" sys_image_guid hca_type board_id hw_rev node_desc parent
		if link "$D/device"; then
			# A sub-function's PCI device is above it.
			dir=$real
			for v in 1 2 3; do
				[ -e "$R$dir/vendor" ] && break
				dir=${dir%/*}
			done
			if [ -e "$R$dir/vendor" ]; then
				put link "$D/pci" "$dir"
				for v in vendor device subsystem_device numa_node local_cpulist current_link_speed current_link_width max_link_speed \
					max_link_width sriov_numvfs; do
					[ -e "$R$dir/$v" ] && file "$dir/$v"
				done
				link "$dir/physfn"
			fi
			link "$D/device/driver"
			for v in "$R$D"/device/net/*; do
				[ -e "$v" ] && put list "$D/netdev" "${v##*/}"
			done
		fi
		for v in "$R$D"/ports/*; do
			[ -d "$v" ] && port "$D/ports/${v##*/}"
		done
	done
}

port() { # DIR
	P=$1
	file "$P/link_layer" "$P/state" "$P/phys_state" "$P/rate" "$P/lid" "$P/sm_lid" "$P/cap_mask"
	some "$P" sm_sl lid_mask_count
	# The first pkeys only: the rest of a table is nearly always empty.
	some "$P/pkeys" 0 1
	found=0
	slots=0
	# Up to 1,024 slots, nearly all empty: no fork, and not even a function call, for those.
	for g in "$R$P/gids/"*; do
		v=
		read -r v <"$g"
		slots=$((slots + 1))
		case $v in
		'' | 0000:0000:0000:0000:0000:0000:0000:0000) continue ;;
		esac
		found=$((found + 1))
		[ "$found" -le 256 ] || continue
		i=${g##*/}
		put file "$P/gids/$i" "$v"
		# Not readable where the netdev is in another network namespace.
		file "$P/gid_attrs/types/$i" "$P/gid_attrs/ndevs/$i"
	done 2>/dev/null
	put count "$P/gids" "$found of $slots"
	[ "$found" -gt 256 ] && put cut "$P/gids" entries
}

# Counters ask the firmware too, and are needed least.
counters() {
	put stage counters ''
	for f in "$R"/sys/class/infiniband/*/ports/*; do
		[ -d "$f" ] || continue
		P=${f#"$R"}
		odd "${P#/sys/class/infiniband/}" && case $P in *[!A-Za-z0-9_.:@+,=/-]*) continue ;; esac
		some "$P/counters" port_xmit_data port_rcv_data port_xmit_wait port_xmit_discards port_rcv_errors symbol_error \
			link_downed link_error_recovery
		some "$P/hw_counters" sent_bytes rcvd_bytes tx_bytes rx_bytes rdma_read_bytes rdma_write_bytes np_cnp_sent rp_cnp_handled \
			out_of_sequence packet_seq_err local_ack_timeout_err rnr_nak_retry_err rx_icrc_encapsulated
	done
}

# ---------------------------------------------------------------- the engine

# Variables whose values may leave.
allowed() { # NAME
	case $1 in
	@FAMILIES@) ;;
	*) return 1 ;;
	esac
	case $1 in
	@VARIABLES@) return 0 ;;
	esac
	return 1
}

# Files that settings name, for later: a look at one can hang where its file system does not answer.
named() { # PID PATH
	case $2 in
	/*) ;;
	*) return ;;
	esac
	case $2 in
	*[!A-Za-z0-9_.,:@+=/-]*) return ;;
	esac
	files_named="$files_named $1:$2"
}

# Whether files are there that settings name, or that NCCL reads unasked. As the process sees them, not as this shell.
named_files() {
	put stage named-files ''
	for pid in $selected; do
		files_named="$files_named $pid:/etc/nccl.conf"
	done
	set -f
	for word in $files_named; do
		pid=${word%%:*}
		word=${word#*:}
		[ -d "$R/proc/$pid/root/" ] || continue
		if [ -e "$R/proc/$pid/root$word" ]; then
			put list named-file "$pid:$word"
		else
			put none "named-file:$pid:$word" absent
		fi
	done
	set +f
}

environment() { # PID
	if ! { true <"$R/proc/$1/environ"; } 2>/dev/null; then
		why_not "/proc/$1/environ"
		return
	fi
	if ! command -v tr >/dev/null 2>&1; then
		put none "/proc/$1/environ" 'no tr'
		return
	fi
	# A variable ends with NUL and may hold newlines. Swapping both leaves one variable to a line, so that a line of a
	# secret cannot pass for a variable.
	text=$(tr '\000\n' '\n\001' <"$R/proc/$1/environ" 2>/dev/null)
	case $text in
	*=*) put list environment "/proc/$1/environ" ;;
	# A process that renames itself may overwrite its variables; one without any is hardly an engine.
	*) put none "/proc/$1/environ" 'it holds no variables' ;;
	esac
	set -f
	IFS=$NL
	for word in $text; do
		name=${word%%=*}
		case $name in
		# Kubernetes sets thousands of these in a large namespace.
		*_SERVICE_HOST | *_SERVICE_PORT | *_SERVICE_PORT_* | *_PORT_[0-9]*) continue ;;
		"$word" | *[!A-Za-z0-9_]*) continue ;;
		esac
		allowed "$name" || continue
		put env "$1/$name" "${word#*=}"
		case $name in
		NCCL_TOPO_FILE | NCCL_CONF_FILE) named "$1" "${word#*=}" ;;
		esac
	done
	IFS=$DEFAULT_IFS
	set +f
	text=
}

# The value of a flag; sets v.
kept() { # NAME TEXT
	case $1 in
	# SGLang takes devices by GPU: {"0": "mlx5_0"}.
	*-ib-device | *_ib_device) v=$2 ;;
	*) json "$2" ;;
	esac
}

# Newlines have been made another sign by then.
LINE=$(printf '\001')
# Something that is no JSON outside of its strings.
OTHER=$(printf '*[!][{}:,0-9.+ \t\001truefalsnE-]*')
# JSON in a flag has room for anything, also for passwords. Names of keys leave, and of values only those of the list below;
# other strings become `...`, other numbers 0. What is no JSON keeps nothing but the word that tells a side.
json() { # TEXT: sets v
	v=$1
	case $1 in
	*'{'*\"*) ;;
	*'{'*)
		case $1 in
		*kv_producer*) v='{kv_producer}' ;;
		*kv_consumer*) v='{kv_consumer}' ;;
		*[A-Za-z]*) v='{unquoted}' ;;
		*)
			v=
			_key=
			outside "$1"
			;;
		esac
		return
		;;
	*) return ;;
	esac
	v=
	_rest=$1
	_key=
	[ "${#_rest}" -le 16384 ] || _rest=
	while :; do
		outside "${_rest%%\"*}"
		case $_rest in
		*\"*) _rest=${_rest#*\"} ;;
		*) return ;;
		esac
		_string=
		while :; do
			case $_rest in
			*\"*) ;;
			*) return ;;
			esac
			_string=$_string${_rest%%\"*}
			_rest=${_rest#*\"}
			escapes "$_string" || break
			_string=$_string\"
		done
		_after=${_rest#"${_rest%%[! 	"$LINE"]*}"}
		case $_after in
		:*)
			_key=$_string
			v=$v\"$_string\"
			;;
		*)
			case $_key in
			@JSON_KEYS@) v=$v\"$_string\" ;;
			*) v="$v\"...\"" ;;
			esac
			;;
		esac
	done
}

# Whether the quote that follows belongs to the string.
escapes() { # TEXT
	_end=$1
	while :; do
		case $_end in
		*\\\\) _end=${_end%??} ;;
		*\\) return 0 ;;
		*) return 1 ;;
		esac
	done
}

# What stands between strings: brackets, numbers, true, false and null.
outside() { # TEXT
	# It is a pattern.
	# shellcheck disable=SC2254
	case $1 in
	$OTHER)
		v="$v "
		return
		;;
	*[0-9]*) ;;
	*)
		v=$v$1
		return
		;;
	esac
	case $_key in
	@JSON_KEYS@) v=$v$1 ;;
	*) v=$v${1%%[0-9]*}0${1##*[0-9]} ;;
	esac
}

# Programs and modules that are told by name; other words of a command line are not.
program() { # WORD
	case $1 in
	'' | *[!A-Za-z0-9_.-]*) return 1 ;;
	vllm | vllm.* | vllm_* | sglang | sglang.* | sglang_router* | sgl-router | trtllm-* | tensorrt_llm.* | dynamo | dynamo.* | \
		dynamo-run | tokenspeed | tokenspeed.* | mooncake_master | mooncake.* | lmcache | lmcache.* | nixlbench | mpi4py.futures.server | \
		ray::*) return 0 ;;
	esac
	return 1
}

arguments() { # PID
	if ! { true <"$R/proc/$1/cmdline"; } 2>/dev/null; then
		why_not "/proc/$1/cmdline"
		return
	fi
	if ! command -v tr >/dev/null 2>&1; then
		put none "/proc/$1/cmdline" 'no tr'
		return
	fi
	text=$(tr '\000\n' '\n\001' <"$R/proc/$1/cmdline" 2>/dev/null)
	put list arguments "/proc/$1/cmdline"
	flag=
	last=
	at=0
	set -f
	IFS=$NL
	for word in $text; do
		at=$((at + 1))
		# A program's name is short, and `##` of a long word takes long.
		base=
		[ "${#word}" -le 512 ] && base=${word##*/}
		if [ -n "$flag" ]; then
			name=$flag
			flag=
			case $word in
			-*) put arg "$1/$name" '' ;;
			*)
				kept "$name" "$word"
				put arg "$1/$name" "$v"
				last=
				continue
				;;
			esac
		fi
		name=${word%%=*}
		case $name in
		@SWITCHES@)
			# Takes no value, so the next word is none.
			case $word in
			*=*)
				kept "$name" "${word#*=}"
				put arg "$1/$name" "$v"
				;;
			*) put arg "$1/$name" '' ;;
			esac
			;;
		@FLAGS@)
			if [ "$name" = "$word" ]; then
				flag=$name
			else
				kept "$name" "${word#*=}"
				put arg "$1/$name" "$v"
			fi
			;;
		-*) ;;
		*)
			if { [ "$at" -le 2 ] || [ "$last" = -m ]; } && program "$base"; then
				put proc "$1/program" "$base"
			else
				case $last:$base in
				vllm:serve | sglang:serve | trtllm-*:serve | trtllm-*:disaggregated | trtllm-*:disaggregated_mpi_worker | trtllm-*:mm_embedding_serve)
					put proc "$1/subcommand" "$base"
					;;
				esac
			fi
			;;
		esac
		last=$base
	done
	[ -n "$flag" ] && put arg "$1/$flag" ''
	IFS=$DEFAULT_IFS
	set +f
	text=
}

LIBRARIES='libuc[psmt]|libucm|libibverbs|librdmacm|libmlx[45]|libefa|lib[a-z0-9_]*-rdmav|libfabric|libnixl|libplugin_|nixl|libcuda\.|libcudart|libgdrapi|libnccl|libmooncake|libmpi\.|libhsa-runtime|libascend'

# Libraries that candidates have mapped: all of them with one grep.
mapped() { # PID...
	files=
	for pid in "$@"; do
		if { true <"$R/proc/$pid/maps"; } 2>/dev/null; then
			files="$files $R/proc/$pid/maps"
			put list maps "/proc/$pid/maps"
		else
			why_not "/proc/$pid/maps"
		fi
	done
	[ -n "$files" ] || return
	if ! command -v grep >/dev/null 2>&1; then
		put none maps 'no grep'
		return
	fi
	# shellcheck disable=SC2086 # the paths are ours, without blanks unless the root of a test has some
	text=$(grep -E "r-xp .*/($LIBRARIES)[^/]*\$|r-xp .*nixl.*\\.so" $files /dev/null 2>/dev/null)
	set -f
	IFS=$NL
	for word in $text; do
		pid=${word#"$R/proc/"}
		pid=${pid%%/*}
		word=${word#*/maps:}
		word=/${word#*/}
		put map "$pid" "$word"
		case $word in
		*/libibverbs[.-]*)
			# Its providers are looked for beside it.
			name=${word%/*}
			case " $verbs_places " in
			*" $name "*) ;;
			*) verbs_places="$verbs_places $name" ;;
			esac
			;;
		esac
		case " $selected " in
		*" $pid "*) ;;
		*) case $word in
			*libuc[pt]* | *nixl* | *libfabric* | *libmooncake*)
				[ "$chosen" -lt 8 ] && selected="$selected $pid" && chosen=$((chosen + 1))
				;;
			esac ;;
		esac
	done
	IFS=$DEFAULT_IFS
	set +f
	text=
}

engine() {
	put stage engine ''
	candidates=
	selected=
	verbs_places=
	files_named=
	chosen=0
	found=0
	for d in "$R"/proc/[0-9]*; do
		v=
		read -r v <"$d/comm"
		pid=${d##*/}
		case $v in
		python* | pypy* | pt_main* | vllm* | VLLM* | sglang* | trtllm* | dynamo* | ray::* | tokenspeed* | mooncake* | nixl*) ;;
		nv-fabricmanage* | nvidia-imex* | nvlsm* | opensm* | nvidia-persiste*)
			put proc "$pid/comm" "$v"
			continue
			;;
		*) continue ;;
		esac
		found=$((found + 1))
		if [ "$found" -gt 128 ]; then
			put cut /proc processes
			break
		fi
		candidates="$candidates $pid"
		put proc "$pid/comm" "$v"
		# The NULs are lost here, so this only tells which command lines are worth reading.
		v=
		IFS= read -r v <"$d/cmdline"
		case $v in
		*vllm* | *VLLM* | *sglang* | *trtllm* | *tensorrt_llm* | *dynamo* | *tokenspeed* | *nixl* | *mooncake*)
			[ "$chosen" -lt 6 ] && selected="$selected $pid" && chosen=$((chosen + 1))
			;;
		esac
	done 2>/dev/null
	[ -d "$R/proc/1" ] || why_not /proc/1
	# shellcheck disable=SC2086 # process ids
	mapped $candidates
	for pid in $selected; do
		put list engine "/proc/$pid"
		status "$pid"
		lines "/proc/$pid/limits" 32
		arguments "$pid"
		environment "$pid"
	done
	put stage own-environment ''
	environment self
}

# User-space parts that the engine's libraries can load.
providers() {
	put stage providers ''
	list driver '/etc/libibverbs.d/*.driver' '/usr/etc/libibverbs.d/*.driver' '/usr/local/etc/libibverbs.d/*.driver' \
		'/opt/*/etc/libibverbs.d/*.driver'
	list provider '/usr/lib/*-linux-gnu/libibverbs/*-rdmav*.so' '/usr/lib64/libibverbs/*-rdmav*.so' \
		'/usr/lib/libibverbs/*-rdmav*.so' '/usr/local/lib*/libibverbs/*-rdmav*.so'
	# On most systems /lib is a link to /usr/lib.
	[ -L "$R/lib" ] || list provider '/lib/*-linux-gnu/libibverbs/*-rdmav*.so'
	for v in $verbs_places; do
		list provider "$v/libibverbs/*-rdmav*.so" "$v/*-rdmav*.so*"
	done
	list nixl-plugin '/usr/local/nixl/lib*/plugins/libplugin_*.so' '/usr/local/nixl/lib/*/plugins/libplugin_*.so' \
		'/opt/nvidia/nvda_nixl/lib64/plugins/libplugin_*.so' '/opt/nvidia/nvda_nixl/lib/*/plugins/libplugin_*.so' \
		'/opt/dynamo/nixl/plugins/libplugin_*.so'
	list verbs '/usr/lib/*-linux-gnu/libibverbs.so*' '/usr/lib64/libibverbs.so*' '/usr/local/lib*/libibverbs.so*'
	list ucx '/usr/lib/*-linux-gnu/libucp.so*' '/usr/lib64/libucp.so*' '/usr/local/lib*/libucp.so*' '/usr/local/ucx/lib*/libucp.so*' \
		'/opt/*/lib*/libucp.so*' '/opt/*/ucx/lib*/libucp.so*'
	list libfabric '/usr/lib/*-linux-gnu/libfabric.so*' '/usr/lib64/libfabric.so*' '/usr/local/lib*/libfabric.so*' \
		'/opt/amazon/efa/lib*/libfabric.so*'
	for v in /usr/local/lib/python3*/dist-packages /usr/local/lib/python3*/site-packages /usr/lib/python3*/site-packages \
		/usr/lib/python3/dist-packages '/opt/*/lib/python3*/site-packages' '/opt/*/venv/lib/python3*/site-packages' \
		'/opt/*/*/lib/python3*/site-packages' '/workspace/.venv/lib/python3*/site-packages' '/app/.venv/lib/python3*/site-packages'; do
		# The version is in the directory's name: no interpreter needed.
		list package "$v/nixl*.dist-info" "$v/vllm-*.dist-info" "$v/sglang-*.dist-info" "$v/tensorrt_llm-*.dist-info" \
			"$v/ai_dynamo-*.dist-info" "$v/mooncake_transfer_engine*.dist-info" "$v/lmcache-*.dist-info" "$v/libucx_*.dist-info"
		list wheel-provider "$v/nixl*.libs/*-rdmav*.so*" "$v/nixl*.libs/libibverbs/*-rdmav*.so*" "$v/nixl*.libs/libibverbs*.so*" "$v/nixl*.libs/libmlx5*.so*" \
			"$v/nixl*.libs/libucp*.so*" "$v/nixl*.libs/ucx/*.so*" "$v/nixl*.libs/libfabric*.so*"
		list nixl-plugin "$v/.nixl*.mesonpy.libs/plugins/libplugin_*.so" "$v/tensorrt_llm/libs/nixl/plugins/libplugin_*.so"
	done
}

# ---------------------------------------------------------------- tools

# Seconds since the machine started, into $now; without a fork.
clock() {
	now=
	{ read -r now v </proc/uptime; } 2>/dev/null
	now=${now%%.*}
	[ -n "$now" ] || now=0
}

# Runs a command for at most so many seconds and leaves none of its children behind.
bounded() { # SECONDS COMMAND...
	seconds=$1
	shift
	if [ -n "$timeout" ]; then
		$setsid timeout -k 1 "$seconds" "$@" </dev/null &
	else
		$setsid "$@" </dev/null &
	fi
	child=$!
	trap 'end_group; exit 143' TERM INT HUP
	if [ -z "$timeout" ]; then
		# A process that has ended keeps its place until it is waited for, but has no program any more.
		while [ "$seconds" -gt 0 ] && [ -e "/proc/$child/exe" ]; do
			sleep 1
			seconds=$((seconds - 1))
		done
		if [ -e "/proc/$child/exe" ]; then
			end_group
			wait "$child"
			return 124
		fi
	fi
	wait "$child"
	code=$?
	[ -n "$setsid" ] && kill -9 "-$child" 2>/dev/null
	return "$code"
}

end_group() {
	[ -n "$setsid" ] && kill -9 "-$child" 2>/dev/null
	kill -9 "$child" 2>/dev/null
}

run() { # ID SECONDS COMMAND...
	id=tool:$1
	seconds=$2
	shift 2
	if ! command -v "$1" >/dev/null 2>&1; then
		put none "$id" absent
		return 1
	fi
	if [ -z "$head" ]; then
		put none "$id" 'no head'
		return 1
	fi
	clock
	left=$((deadline - now))
	[ "$seconds" -le "$tool_limit" ] || seconds=$tool_limit
	if [ "$left" -le 0 ]; then
		put none "$id" 'no time left'
		return 1
	fi
	[ "$seconds" -le "$left" ] || seconds=$left
	# Named before it runs: a stream that ends here tells what did not come back.
	put stage "$id" "$seconds"
	text=$({
		bounded "$seconds" "$@" 2>&1
		printf '\n%s' "$?"
	} 2>/dev/null | head -c "$TOOL_OUTPUT")
	# Looked for near the end only: to search a long text for its last newline takes busybox sh minutes.
	case $text in
	*"$NL"[0-9] | *"$NL"[0-9][0-9] | *"$NL"[0-9][0-9][0-9])
		code=${text##*"$NL"}
		text=${text%"$NL"*}
		;;
	*)
		code='cut'
		put cut "$id" output
		;;
	esac
	set -f
	IFS=$NL
	told=1
	for word in $text; do
		[ "$id" != tool:nvidia-smi-q ] || telling "$word"
		[ "$told" = 1 ] && put tool "$id" "$word"
	done
	IFS=$DEFAULT_IFS
	set +f
	text=
	case $code in
	124 | 137 | 143) code=timeout ;;
	esac
	put exit "$id" "$code"
	[ "$code" = 0 ]
}

# `nvidia-smi -q` prints thousands of lines, the names of other processes among them. Into $told: whether to keep one.
telling() { # LINE
	case $1 in
	'    Fabric' | '    Fabric '* | '    MIG Mode'* | '    Addressing Mode'*) told=1 ;;
	'        '*) ;;
	'    Product Name '* | '    Product Architecture '* | '    GPU UUID '* | '    Minor Number '* | '    GPU Fabric GUID'* | '    Persistence Mode '* | '    GPU Virtualization Mode'*)
		told=1
		;;
	'    '*) told=0 ;;
	*) told=1 ;;
	esac
}

needs() { # ID MODULE...: whether a tool finds its modules loaded, so that it need not load them
	id=$1
	shift
	for name in "$@"; do
		if [ ! -d "$R/sys/module/$name" ]; then
			put none "tool:$id" "would load $name"
			return 1
		fi
	done
}

tools() {
	put stage tools ''
	run df 5 df -Pk "$R/dev/shm"
	run ip 5 ip -o addr show || addresses
	kernel_config
	if [ -e "$R/proc/driver/nvidia/version" ] || [ -e "$R/dev/dxg" ] || [ -d "$R/sys/module/nvidia" ]; then
		run nvidia-smi-q 10 nvidia-smi -q
		run nvidia-smi-topo 10 nvidia-smi topo -m
		run nvidia-smi-nvlink 10 nvidia-smi nvlink -s
	else
		# It loads the driver.
		put none tool:nvidia-smi-q 'no driver loaded'
	fi
	needs rdma-system ib_core && run rdma-system 3 rdma system show && run rdma-link 3 rdma link show
	[ "$with_sockets" = yes ] && needs rdma-qp ib_core && run rdma-qp 5 rdma resource show qp
	needs ibv_devinfo ib_core ib_uverbs && run ibv_devinfo 5 ibv_devinfo
	run ucx_info-v 5 ucx_info -v
	# These two open every transport.
	if [ -d "$R/sys/class/infiniband" ]; then
		needs ucx_info-d ib_core ib_uverbs rdma_cm rdma_ucm && run ucx_info-d 5 ucx_info -d
		needs fi_info ib_core ib_uverbs rdma_cm rdma_ucm && run fi_info 5 fi_info -l
	else
		put none tool:ucx_info-d 'no RDMA devices'
		put none tool:fi_info 'no RDMA devices'
	fi
}

# Which namespaces the engine and this process are in, and which devices the engine has open.
namespaces() {
	set -- "$R/proc/self/ns/net" "$R/proc/self/ns/ipc" "$R/proc/self/ns/pid"
	for pid in $selected; do
		set -- "$@" "$R/proc/$pid/ns/net" "$R/proc/$pid/ns/ipc" "$R/proc/$pid/ns/pid" "$R/proc/$pid/exe"
	done
	[ -e "$R/proc/self/ns" ] || return
	links namespace "$@"
	[ -n "$selected" ] || return
	set --
	for pid in $selected; do
		found=0
		# Not followed: a file behind one may be on a file system that does not answer.
		for f in "$R/proc/$pid"/fd/*; do
			found=$((found + 1))
			[ "$found" -le 2048 ] || break
			set -- "$@" "$f"
		done
	done
	links fd "$@"
}

# TCP sockets of the engine's network namespaces that listen or are connected, and which of them are whose. The files
# are read line by line, so that a worker with thousands of connections costs no more memory.
sockets() {
	put stage sockets ''
	seen_net=
	for pid in $selected; do
		known=
		for v in $seen_net; do
			# shellcheck disable=SC3013 # dash, busybox and bash have -ef
			[ "$R/proc/$pid/ns/net" -ef "$R/proc/$v/ns/net" ] && known=$v
		done
		[ -z "$known" ] || continue
		seen_net="$seen_net $pid"
		for name in tcp tcp6; do
			if ! { true <"$R/proc/$pid/net/$name"; } 2>/dev/null; then
				why_not "/proc/$pid/net/$name"
				continue
			fi
			put list sockets "/proc/$pid/net/$name"
			found=0
			listening=0
			while read -r v own rest state base base base base base word base; do
				found=$((found + 1))
				if [ "$found" -gt 8192 ]; then
					put cut "/proc/$pid/net/$name" lines
					break
				fi
				case $state in
				0A) listening=$((listening + 1)) ;;
				01) ;;
				*) continue ;;
				esac
				[ "$state" = 01 ] || [ "$listening" -le 256 ] || continue
				put file "/proc/$pid/net/$name" "$own $rest $state $word"
			done 2>/dev/null <"$R/proc/$pid/net/$name"
		done
	done
}

links() { # KIND PATH...: where links lead that are no directories, all with one ls
	kind=$1
	shift
	text=$(ls -ld "$@" 2>/dev/null)
	own=
	pid=
	set -f
	IFS=$NL
	for word in $text; do
		case $word in
		*' -> '*)
			v=${word##* -> }
			word=${word%" -> $v"}
			word=${word##* }
			case $kind:$v in
			# Of programs only an interpreter's name is told.
			namespace:*:\[*\] | namespace:*/python* | namespace:*/pypy* | fd:/dev/infiniband/* | fd:/dev/nvidia* | fd:/dev/gdrdrv)
				put link "${word#"$R"}" "$v"
				;;
			fd:socket:\[*\])
				[ "$with_sockets" = yes ] || continue
				# Many to a record.
				word=${word#"$R/proc/"}
				word=${word%%/*}
				if [ "$word" != "$pid" ] || [ "${#own}" -gt 3900 ]; then
					[ -z "$own" ] || put list "sockets-of:$pid" "$own"
					own=
					pid=$word
				fi
				v=${v#socket:?}
				own="$own ${v%?}"
				;;
			esac
			;;
		esac
	done
	[ -z "$own" ] || put list "sockets-of:$pid" "$own"
	IFS=$DEFAULT_IFS
	set +f
	text=
}

# Only where a GPU or RDMA device makes it matter, and only where it can be read.
kernel_config() {
	[ -d "$R/sys/class/infiniband" ] || [ -e "$R/proc/driver/nvidia/version" ] || return
	v=
	{ read -r v <"$R/proc/sys/kernel/osrelease"; } 2>/dev/null
	odd "$v" && return
	for f in "/boot/config-$v" "/lib/modules/$v/config"; do
		[ -r "$R$f" ] || continue
		run kernel-config 3 grep -E '^CONFIG_(DMA_SHARED_BUFFER|DMABUF_MOVE_NOTIFY|PCI_P2PDMA|INFINIBAND_ON_DEMAND_PAGING|INFINIBAND_USER_MEM|HSA_AMD_P2P)=' "$R$f"
		return
	done
	put none tool:kernel-config absent
}

# ---------------------------------------------------------------- who listens

# Over a connection nothing tells the script that it is lost, except the end of its standard input. A process of its
# own waits for that, and ends the script with what it has started.
watch() {
	exec 4<&0
	group=$$
	read -r v v v v v rest 2>/dev/null <"/proc/$$/stat"
	# A container runtime starts each command in a group of its own; never end somebody else's.
	[ "$v" = "$$" ] && group=-$$
	{
		trap '' TERM INT HUP
		while read -r v; do :; done
		kill -TERM "$group"
	} <&4 >/dev/null 2>&1 &
	watcher=$!
	exec 4<&-
	trap 'unwatch; exit 143' TERM INT HUP
}

unwatch() {
	[ -n "$watcher" ] || return 0
	kill -9 "$watcher" 2>/dev/null
	# Else it would stay as a zombie where the first process of the container does not look after others.
	wait "$watcher" 2>/dev/null
	watcher=
}

# ---------------------------------------------------------------- all of it

main() {
	# Nothing of the caller's settings may change what is read; root and limits come from arguments only.
	LC_ALL=C
	export LC_ALL
	DEFAULT_IFS=" $(printf '\t.')"
	DEFAULT_IFS=${DEFAULT_IFS%.}$NL
	IFS=$DEFAULT_IFS
	R='' limit=25 tool_limit=10 with_tools=yes with_sockets=no n=0 extra_path='' watcher=''
	for word in "$@"; do
		case $word in
		root=*) R=${word#root=} ;;
		path=*) extra_path=${word#path=} ;;
		limit=*[!0-9]* | tool_limit=*[!0-9]* | limit= | tool_limit=) ;;
		limit=*) limit=${word#limit=} ;;
		tool_limit=*) tool_limit=${word#tool_limit=} ;;
		tools=*) with_tools=${word#tools=} ;;
		sockets=*) with_sockets=${word#sockets=} ;;
		watch=yes) watch ;;
		esac
	done
	if [ -n "$R" ]; then
		CDPATH='' cd -P "$R" 2>/dev/null || R=/nonexistent
		[ "$R" = /nonexistent ] || R=$PWD
		[ "$R" != / ] || R=
	fi
	cd / 2>/dev/null || true
	PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/nvidia/bin:/opt/amazon/efa/bin
	[ -z "$extra_path" ] || PATH=$extra_path:$PATH
	export PATH
	unset POSIXLY_CORRECT UCX_LOG_FILE
	timeout='' setsid='' head=''
	command -v timeout >/dev/null 2>&1 && timeout=timeout
	command -v setsid >/dev/null 2>&1 && setsid=setsid
	command -v head >/dev/null 2>&1 && head='head'
	clock
	deadline=$((now + limit))
	put begin 1 "$R"
	system
	modules
	gpus
	pci
	interfaces
	engine
	namespaces
	[ "$with_sockets" = yes ] && sockets
	providers
	device_nodes
	rdma
	if [ "$with_tools" = yes ]; then
		tools
	else
		addresses
	fi
	counters
	named_files
	unwatch
	put end "$n" ''
}

# On one line: a shell that reads its script from standard input must not wait there for another one.
main "$@"; exit
