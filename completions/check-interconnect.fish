# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_check_interconnect_global_optspecs
    string join \n h/help V/version
end

function __fish_check_interconnect_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_check_interconnect_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_check_interconnect_using_subcommand
    set -l cmd (__fish_check_interconnect_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -s h -l help -d 'Print help'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "env" -d 'Judge recipes: Kubernetes manifests, before anything is deployed'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "node" -d 'RDMA, GPUDirect, NVLink and limits: of this host or container, of pods, or of saved outputs'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "nixl" -d 'NIXL in an engine that runs, here or in pods; between two pods; or in saved logs of one or both sides'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "check" -d 'A whole deployment: its workers, each and held against each other, prefill against decode'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "collect" -d 'Save everything that check would judge, of workers of a cluster or of this host, and judge nothing'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "replay" -d 'Judge a bundle that collect or check --bundle saved, with the same output'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "rbac" -d 'Print the rights that check needs as a Role and a RoleBinding (YAML); nothing is applied'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "manifest" -d 'Print what collects from inside a pod where nobody may run a command in it (YAML); nothing is applied'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "explain" -d 'What a check or a cause means, when it is no problem, and how to fix it'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "vars" -d 'Transport variables: what they do, and what a value does'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "completions" -d 'Print a completion script'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "man" -d 'Print the manual page (roff)'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "schema" -d 'Print the JSON Schema of the report, or of the configuration file'
complete -c check-interconnect -n "__fish_check_interconnect_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -l render-timeout -d 'How long kubectl, kustomize or helm may take for one of them' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -l values -d 'Values for the Helm charts, as helm\'s option of that name; may be given several times' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -l config -d 'Configuration file, instead of check-interconnect.toml here or above, up to the repository\'s root' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -l baseline -d 'Findings in this file are known and count as ok' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -l write-baseline -d 'Write all findings that count into this file, and count them as known' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -s o -l output -d 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -l color -d 'When to color text' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -l fail-on -d 'From what on to exit with 1' -r -f -a "fail\t'A failed check'
warn\t'Also a warning'
unproven\t'Also a deployment that nothing has proven'
never\t'Never: 1 and 3 become 0'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -l no-render -d 'Do not render kustomizations and Helm charts; judge their parts as they are'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -l no-config -d 'Use no configuration file'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -l fix -d 'Put right what has only one right text, such as a space in UCX_TLS, and judge the result'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -l diff -d 'Print what --fix would change, as a patch, and change nothing; it has no other format'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -s v -l verbose -d 'Tell every result in full'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand env" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l from -d 'Judge saved or pasted outputs of tools and logs instead, as one picture; - is standard input' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l role -d 'What runs there, where nothing else tells: the lack of a fabric is then a failure' -r -f -a "prefill\t'Computes the KV cache'
decode\t'Fetches the KV cache'
aggregated\t'Does both; nothing is transferred'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l pod -d 'Pod to look into; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -s l -l selector -d 'Pods with these labels, as kubectl\'s option of that name' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -s c -l container -d 'Container; without it main, else the one that asks for accelerators' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -s n -l namespace -d 'Namespace; that of the kubeconfig\'s context without it' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l context -d 'Context of the kubeconfig' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l kubeconfig -d 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod\'s own service account' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l as -d 'User to act as' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l as-group -d 'Group to act as; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l via -d 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l request-timeout -d 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l timeout -d 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l concurrency -d 'Containers that are looked into at once' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -s o -l output -d 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l color -d 'When to color text' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l fail-on -d 'From what on to exit with 1' -r -f -a "fail\t'A failed check'
warn\t'Also a warning'
unproven\t'Also a deployment that nothing has proven'
never\t'Never: 1 and 3 become 0'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l topology -d 'Print which network card serves which GPU, and over what, instead of a verdict; as text or json'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -l all -d 'Every pod of the namespace that looks like a KV worker, by its labels or its engine\'s flags'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -s v -l verbose -d 'Tell every result in full'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand node" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l from -d 'Judge saved logs of one or both sides; - is standard input' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l role -d 'What the process is for, where nothing else tells: settings that leave only TCP are then a failure' -r -f -a "prefill\t'Computes the KV cache'
decode\t'Fetches the KV cache'
aggregated\t'Does both; nothing is transferred'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l pod -d 'Pod to look into; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -s l -l selector -d 'Pods with these labels, as kubectl\'s option of that name' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -s c -l container -d 'Container; without it main, else the one that asks for accelerators' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -s n -l namespace -d 'Namespace; that of the kubeconfig\'s context without it' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l context -d 'Context of the kubeconfig' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l kubeconfig -d 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod\'s own service account' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l as -d 'User to act as' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l as-group -d 'Group to act as; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l via -d 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l request-timeout -d 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l timeout -d 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l concurrency -d 'Containers that are looked into at once' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l peer -d 'The pod at the other end' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l peer-container -d 'Its container; that of --container without it' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l peer-namespace -d 'Its namespace; that of --namespace without it' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l rate -d 'Move so many bytes a second at most, on average (500M, 2G)' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l largest -d 'Transfer blocks of so many bytes at most (64M without it); below 16M no rate is judged' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l observe -d 'Look at the counters of interfaces and RDMA ports before and after so long, while real requests run; --timeout bounds all of it' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -s o -l output -d 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l color -d 'When to color text' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l fail-on -d 'From what on to exit with 1' -r -f -a "fail\t'A failed check'
warn\t'Also a warning'
unproven\t'Also a deployment that nothing has proven'
never\t'Never: 1 and 3 become 0'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l all -d 'Every pod of the namespace that looks like a KV worker, by its labels or its engine\'s flags'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l debug-pods -d 'Print a pod (YAML) for each of the pods, with the same node, resources, claims and networks and another image, for workers whose image has no NIXL; nothing is applied'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l transfer -d 'Measure a real transfer between --pod and --peer with their own NIXL and their engines\' settings, and tell what carried it. It moves some hundred MiB and takes 64 MiB of memory in each; --timeout bounds all of it'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l dry-run -d 'Print what would run where, and run nothing in a worker'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -l force -d 'Make a NIXL agent, and transfer, also in a pod that does not look like a prefill or decode worker'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -s v -l verbose -d 'Tell every result in full'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand nixl" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l from-logs -d 'Judge logs of what manifest prints, without any cluster; - is standard input' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -s f -l filename -d 'The recipe that was deployed: its deployments are looked for in the cluster, and held against what runs' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l prefill -d 'Labels of the prefill workers, where neither labels nor flags that are known tell roles' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l decode -d 'Labels of the decode workers' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l depth -d 'What is looked at beside each worker\'s own' -r -f -a "auto\t'In all, up to 16 workers; else in one of each workload and role'
sample\t'In one of each workload and role'
all\t'In all'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l run-timeout -d 'How long all of it may take (10m); what is not there by then is told as missing. No limit without it' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l pod -d 'Pod to look into; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -s l -l selector -d 'Pods with these labels, as kubectl\'s option of that name' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -s c -l container -d 'Container; without it main, else the one that asks for accelerators' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -s n -l namespace -d 'Namespace; that of the kubeconfig\'s context without it' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l context -d 'Context of the kubeconfig' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l kubeconfig -d 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod\'s own service account' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l as -d 'User to act as' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l as-group -d 'Group to act as; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l via -d 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l request-timeout -d 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l timeout -d 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l concurrency -d 'Containers that are looked into at once' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l pairs -d 'Which pairs: all, ring (each worker at least once), or so many' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l rate -d 'Move so many bytes a second at most in each pair, on average (500M, 2G)' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l largest -d 'Transfer blocks of so many bytes at most (64M without it); below 16M no rate is judged' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l bundle -d 'Save everything that was observed into this file; replay judges it anywhere' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -s o -l output -d 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l color -d 'When to color text' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l fail-on -d 'From what on to exit with 1' -r -f -a "fail\t'A failed check'
warn\t'Also a warning'
unproven\t'Also a deployment that nothing has proven'
never\t'Never: 1 and 3 become 0'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l all -d 'Every pod of the namespace that looks like a KV worker, by its labels or its engine\'s flags'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l transfer -d 'Measure real transfers between prefill and decode workers with their own NIXL and their engines\' settings, in rounds in which no worker takes part twice. Each moves some hundred MiB and takes 64 MiB of memory in each; --timeout bounds each'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -l dry-run -d 'Print what would run where, and run nothing in a worker but the look'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -s v -l verbose -d 'Tell every result in full'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand check" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -s o -l output -d 'File to save it in' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l role -d 'What this host is for, where no engine that runs here tells' -r -f -a "prefill\t'Computes the KV cache'
decode\t'Fetches the KV cache'
aggregated\t'Does both; nothing is transferred'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -s f -l filename -d 'The recipe that was deployed: its deployments are looked for in the cluster, and held against what runs' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l prefill -d 'Labels of the prefill workers, where neither labels nor flags that are known tell roles' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l decode -d 'Labels of the decode workers' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l depth -d 'What is looked at beside each worker\'s own' -r -f -a "auto\t'In all, up to 16 workers; else in one of each workload and role'
sample\t'In one of each workload and role'
all\t'In all'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l run-timeout -d 'How long all of it may take (10m); what is not there by then is told as missing. No limit without it' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l pod -d 'Pod to look into; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -s l -l selector -d 'Pods with these labels, as kubectl\'s option of that name' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -s c -l container -d 'Container; without it main, else the one that asks for accelerators' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -s n -l namespace -d 'Namespace; that of the kubeconfig\'s context without it' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l context -d 'Context of the kubeconfig' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l kubeconfig -d 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod\'s own service account' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l as -d 'User to act as' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l as-group -d 'Group to act as; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l via -d 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l request-timeout -d 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l timeout -d 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l concurrency -d 'Containers that are looked into at once' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -l all -d 'Every pod of the namespace that looks like a KV worker, by its labels or its engine\'s flags'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand collect" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand replay" -l against -d 'Tell only what changed since this earlier bundle (several are one deployment here, too); as text or json' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand replay" -s o -l output -d 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand replay" -l color -d 'When to color text' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand replay" -l fail-on -d 'From what on to exit with 1' -r -f -a "fail\t'A failed check'
warn\t'Also a warning'
unproven\t'Also a deployment that nothing has proven'
never\t'Never: 1 and 3 become 0'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand replay" -s v -l verbose -d 'Tell every result in full'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand replay" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand rbac" -s n -l namespace -d 'Namespace of the workers' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand rbac" -l name -d 'Name of the Role and of its binding' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand rbac" -l user -d 'User who gets the rights; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand rbac" -l group -d 'Group that gets them; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand rbac" -l service-account -d 'Service account that gets them; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand rbac" -l nodes -d 'Also a ClusterRole that lists nodes: what they offer, and why a worker waits for one'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand rbac" -s h -l help -d 'Print help'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand rbac" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -s f -l filename -d 'Pod of a worker, or a workload with a pod template, as YAML or JSON; - is standard input' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l kind -d 'What is printed' -r -f -a "init-container\t'A patch for the worker\'s pod template: it collects in the worker\'s own pod, before its engine starts'
job\t'A Job beside the worker: same image, node, resources, claims and networks'
cronjob\t'A CronJob that runs check-interconnect node there, and writes what it says for Prometheus'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l image -d 'Image, where no worker is given or another than the worker\'s is meant; one with check-interconnect for a cronjob' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l resource -d 'Extended resource that the workers ask for (rdma/ib=1), where no worker is given; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l role -d 'Role of the worker, where nothing else tells' -r -f -a "prefill\t'Computes the KV cache'
decode\t'Fetches the KV cache'
aggregated\t'Does both; nothing is transferred'"
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l textfile-dir -d 'Directory of the node from which its Prometheus exporter reads text files; for a cronjob' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l schedule -d 'When a cronjob runs' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l pod -d 'Pod to look into; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -s l -l selector -d 'Pods with these labels, as kubectl\'s option of that name' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -s c -l container -d 'Container; without it main, else the one that asks for accelerators' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -s n -l namespace -d 'Namespace; that of the kubeconfig\'s context without it' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l context -d 'Context of the kubeconfig' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l kubeconfig -d 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod\'s own service account' -r -F
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l as -d 'User to act as' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l as-group -d 'Group to act as; may be given several times' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l via -d 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l request-timeout -d 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l timeout -d 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l concurrency -d 'Containers that are looked into at once' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -l all -d 'Every pod of the namespace that looks like a KV worker, by its labels or its engine\'s flags'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand manifest" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand explain" -s h -l help -d 'Print help'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand explain" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand vars" -l build -d 'Library build or version to judge for: full-1.23, nixl-1.5.1-wheel, efa-1.23, no-hca-1.23 and so on for UCX_TLS; a UCX version for UCX_NET_DEVICES; an NCCL version for NCCL_IB_HCA' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand vars" -s o -l output -d 'text or json; json where a value is judged for a build' -r
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand vars" -l unset -d 'Judge the unset variable'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand vars" -s h -l help -d 'Print help'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand vars" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand completions" -s h -l help -d 'Print help'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand completions" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand man" -s h -l help -d 'Print help'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand man" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand schema" -s V -l version -d 'Print version'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "env" -d 'Judge recipes: Kubernetes manifests, before anything is deployed'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "node" -d 'RDMA, GPUDirect, NVLink and limits: of this host or container, of pods, or of saved outputs'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "nixl" -d 'NIXL in an engine that runs, here or in pods; between two pods; or in saved logs of one or both sides'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "check" -d 'A whole deployment: its workers, each and held against each other, prefill against decode'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "collect" -d 'Save everything that check would judge, of workers of a cluster or of this host, and judge nothing'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "replay" -d 'Judge a bundle that collect or check --bundle saved, with the same output'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "rbac" -d 'Print the rights that check needs as a Role and a RoleBinding (YAML); nothing is applied'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "manifest" -d 'Print what collects from inside a pod where nobody may run a command in it (YAML); nothing is applied'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "explain" -d 'What a check or a cause means, when it is no problem, and how to fix it'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "vars" -d 'Transport variables: what they do, and what a value does'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "completions" -d 'Print a completion script'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "man" -d 'Print the manual page (roff)'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "schema" -d 'Print the JSON Schema of the report, or of the configuration file'
complete -c check-interconnect -n "__fish_check_interconnect_using_subcommand help; and not __fish_seen_subcommand_from env node nixl check collect replay rbac manifest explain vars completions man schema help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
