
use builtin;
use str;

set edit:completion:arg-completer[check-interconnect] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'check-interconnect'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'check-interconnect'= {
            cand -h 'Print help'
            cand --help 'Print help'
            cand -V 'Print version'
            cand --version 'Print version'
            cand env 'Judge recipes: Kubernetes manifests, before anything is deployed'
            cand node 'RDMA, GPUDirect, NVLink and limits: of this host or container, of pods, or of saved outputs'
            cand nixl 'NIXL in an engine that runs, here or in pods; between two pods; or in saved logs of one or both sides'
            cand check 'A whole deployment: its workers, each and held against each other, prefill against decode'
            cand collect 'Save everything that check would judge, of workers of a cluster or of this host, and judge nothing'
            cand replay 'Judge a bundle that collect or check --bundle saved, with the same output'
            cand rbac 'Print the rights that check needs as a Role and a RoleBinding (YAML); nothing is applied'
            cand manifest 'Print what collects from inside a pod where nobody may run a command in it (YAML); nothing is applied'
            cand explain 'What a check or a cause means, when it is no problem, and how to fix it'
            cand vars 'Transport variables: what they do, and what a value does'
            cand completions 'Print a completion script'
            cand man 'Print the manual page (roff)'
            cand schema 'Print the JSON Schema of the report, or of the configuration file'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'check-interconnect;env'= {
            cand --render-timeout 'How long kubectl, kustomize or helm may take for one of them'
            cand --values 'Values for the Helm charts, as helm''s option of that name; may be given several times'
            cand --config 'Configuration file, instead of check-interconnect.toml here or above, up to the repository''s root'
            cand --baseline 'Findings in this file are known and count as ok'
            cand --write-baseline 'Write all findings that count into this file, and count them as known'
            cand -o 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus'
            cand --output 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus'
            cand --color 'When to color text'
            cand --fail-on 'From what on to exit with 1'
            cand --no-render 'Do not render kustomizations and Helm charts; judge their parts as they are'
            cand --no-config 'Use no configuration file'
            cand --fix 'Put right what has only one right text, such as a space in UCX_TLS, and judge the result'
            cand --diff 'Print what --fix would change, as a patch, and change nothing; it has no other format'
            cand -v 'Tell every result in full'
            cand --verbose 'Tell every result in full'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;node'= {
            cand --from 'Judge saved or pasted outputs of tools and logs instead, as one picture; - is standard input'
            cand --role 'What runs there, where nothing else tells: the lack of a fabric is then a failure'
            cand --pod 'Pod to look into; may be given several times'
            cand -l 'Pods with these labels, as kubectl''s option of that name'
            cand --selector 'Pods with these labels, as kubectl''s option of that name'
            cand -c 'Container; without it main, else the one that asks for accelerators'
            cand --container 'Container; without it main, else the one that asks for accelerators'
            cand -n 'Namespace; that of the kubeconfig''s context without it'
            cand --namespace 'Namespace; that of the kubeconfig''s context without it'
            cand --context 'Context of the kubeconfig'
            cand --kubeconfig 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod''s own service account'
            cand --as 'User to act as'
            cand --as-group 'Group to act as; may be given several times'
            cand --via 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server'
            cand --request-timeout 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl'
            cand --timeout 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair'
            cand --concurrency 'Containers that are looked into at once'
            cand -o 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus'
            cand --output 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus'
            cand --color 'When to color text'
            cand --fail-on 'From what on to exit with 1'
            cand --topology 'Print which network card serves which GPU, and over what, instead of a verdict; as text or json'
            cand --all 'Every pod of the namespace that looks like a KV worker, by its labels or its engine''s flags'
            cand -v 'Tell every result in full'
            cand --verbose 'Tell every result in full'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;nixl'= {
            cand --from 'Judge saved logs of one or both sides; - is standard input'
            cand --role 'What the process is for, where nothing else tells: settings that leave only TCP are then a failure'
            cand --pod 'Pod to look into; may be given several times'
            cand -l 'Pods with these labels, as kubectl''s option of that name'
            cand --selector 'Pods with these labels, as kubectl''s option of that name'
            cand -c 'Container; without it main, else the one that asks for accelerators'
            cand --container 'Container; without it main, else the one that asks for accelerators'
            cand -n 'Namespace; that of the kubeconfig''s context without it'
            cand --namespace 'Namespace; that of the kubeconfig''s context without it'
            cand --context 'Context of the kubeconfig'
            cand --kubeconfig 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod''s own service account'
            cand --as 'User to act as'
            cand --as-group 'Group to act as; may be given several times'
            cand --via 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server'
            cand --request-timeout 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl'
            cand --timeout 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair'
            cand --concurrency 'Containers that are looked into at once'
            cand --peer 'The pod at the other end'
            cand --peer-container 'Its container; that of --container without it'
            cand --peer-namespace 'Its namespace; that of --namespace without it'
            cand --rate 'Move so many bytes a second at most, on average (500M, 2G)'
            cand --largest 'Transfer blocks of so many bytes at most (64M without it); below 16M no rate is judged'
            cand --observe 'Look at the counters of interfaces and RDMA ports before and after so long, while real requests run; --timeout bounds all of it'
            cand -o 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus'
            cand --output 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus'
            cand --color 'When to color text'
            cand --fail-on 'From what on to exit with 1'
            cand --all 'Every pod of the namespace that looks like a KV worker, by its labels or its engine''s flags'
            cand --debug-pods 'Print a pod (YAML) for each of the pods, with the same node, resources, claims and networks and another image, for workers whose image has no NIXL; nothing is applied'
            cand --transfer 'Measure a real transfer between --pod and --peer with their own NIXL and their engines'' settings, and tell what carried it. It moves some hundred MiB and takes 64 MiB of memory in each; --timeout bounds all of it'
            cand --dry-run 'Print what would run where, and run nothing in a worker'
            cand --force 'Make a NIXL agent, and transfer, also in a pod that does not look like a prefill or decode worker'
            cand -v 'Tell every result in full'
            cand --verbose 'Tell every result in full'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;check'= {
            cand --from-logs 'Judge logs of what manifest prints, without any cluster; - is standard input'
            cand -f 'The recipe that was deployed: its deployments are looked for in the cluster, and held against what runs'
            cand --filename 'The recipe that was deployed: its deployments are looked for in the cluster, and held against what runs'
            cand --prefill 'Labels of the prefill workers, where neither labels nor flags that are known tell roles'
            cand --decode 'Labels of the decode workers'
            cand --depth 'What is looked at beside each worker''s own'
            cand --run-timeout 'How long all of it may take (10m); what is not there by then is told as missing. No limit without it'
            cand --pod 'Pod to look into; may be given several times'
            cand -l 'Pods with these labels, as kubectl''s option of that name'
            cand --selector 'Pods with these labels, as kubectl''s option of that name'
            cand -c 'Container; without it main, else the one that asks for accelerators'
            cand --container 'Container; without it main, else the one that asks for accelerators'
            cand -n 'Namespace; that of the kubeconfig''s context without it'
            cand --namespace 'Namespace; that of the kubeconfig''s context without it'
            cand --context 'Context of the kubeconfig'
            cand --kubeconfig 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod''s own service account'
            cand --as 'User to act as'
            cand --as-group 'Group to act as; may be given several times'
            cand --via 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server'
            cand --request-timeout 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl'
            cand --timeout 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair'
            cand --concurrency 'Containers that are looked into at once'
            cand --pairs 'Which pairs: all, ring (each worker at least once), or so many'
            cand --rate 'Move so many bytes a second at most in each pair, on average (500M, 2G)'
            cand --largest 'Transfer blocks of so many bytes at most (64M without it); below 16M no rate is judged'
            cand --bundle 'Save everything that was observed into this file; replay judges it anywhere'
            cand -o 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus'
            cand --output 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus'
            cand --color 'When to color text'
            cand --fail-on 'From what on to exit with 1'
            cand --all 'Every pod of the namespace that looks like a KV worker, by its labels or its engine''s flags'
            cand --transfer 'Measure real transfers between prefill and decode workers with their own NIXL and their engines'' settings, in rounds in which no worker takes part twice. Each moves some hundred MiB and takes 64 MiB of memory in each; --timeout bounds each'
            cand --dry-run 'Print what would run where, and run nothing in a worker but the look'
            cand -v 'Tell every result in full'
            cand --verbose 'Tell every result in full'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;collect'= {
            cand -o 'File to save it in'
            cand --output 'File to save it in'
            cand --role 'What this host is for, where no engine that runs here tells'
            cand -f 'The recipe that was deployed: its deployments are looked for in the cluster, and held against what runs'
            cand --filename 'The recipe that was deployed: its deployments are looked for in the cluster, and held against what runs'
            cand --prefill 'Labels of the prefill workers, where neither labels nor flags that are known tell roles'
            cand --decode 'Labels of the decode workers'
            cand --depth 'What is looked at beside each worker''s own'
            cand --run-timeout 'How long all of it may take (10m); what is not there by then is told as missing. No limit without it'
            cand --pod 'Pod to look into; may be given several times'
            cand -l 'Pods with these labels, as kubectl''s option of that name'
            cand --selector 'Pods with these labels, as kubectl''s option of that name'
            cand -c 'Container; without it main, else the one that asks for accelerators'
            cand --container 'Container; without it main, else the one that asks for accelerators'
            cand -n 'Namespace; that of the kubeconfig''s context without it'
            cand --namespace 'Namespace; that of the kubeconfig''s context without it'
            cand --context 'Context of the kubeconfig'
            cand --kubeconfig 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod''s own service account'
            cand --as 'User to act as'
            cand --as-group 'Group to act as; may be given several times'
            cand --via 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server'
            cand --request-timeout 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl'
            cand --timeout 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair'
            cand --concurrency 'Containers that are looked into at once'
            cand --all 'Every pod of the namespace that looks like a KV worker, by its labels or its engine''s flags'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;replay'= {
            cand --against 'Tell only what changed since this earlier bundle (several are one deployment here, too); as text or json'
            cand -o 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus'
            cand --output 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus'
            cand --color 'When to color text'
            cand --fail-on 'From what on to exit with 1'
            cand -v 'Tell every result in full'
            cand --verbose 'Tell every result in full'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;rbac'= {
            cand -n 'Namespace of the workers'
            cand --namespace 'Namespace of the workers'
            cand --name 'Name of the Role and of its binding'
            cand --user 'User who gets the rights; may be given several times'
            cand --group 'Group that gets them; may be given several times'
            cand --service-account 'Service account that gets them; may be given several times'
            cand --nodes 'Also a ClusterRole that lists nodes: what they offer, and why a worker waits for one'
            cand -h 'Print help'
            cand --help 'Print help'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;manifest'= {
            cand -f 'Pod of a worker, or a workload with a pod template, as YAML or JSON; - is standard input'
            cand --filename 'Pod of a worker, or a workload with a pod template, as YAML or JSON; - is standard input'
            cand --kind 'What is printed'
            cand --image 'Image, where no worker is given or another than the worker''s is meant; one with check-interconnect for a cronjob'
            cand --resource 'Extended resource that the workers ask for (rdma/ib=1), where no worker is given; may be given several times'
            cand --role 'Role of the worker, where nothing else tells'
            cand --textfile-dir 'Directory of the node from which its Prometheus exporter reads text files; for a cronjob'
            cand --schedule 'When a cronjob runs'
            cand --pod 'Pod to look into; may be given several times'
            cand -l 'Pods with these labels, as kubectl''s option of that name'
            cand --selector 'Pods with these labels, as kubectl''s option of that name'
            cand -c 'Container; without it main, else the one that asks for accelerators'
            cand --container 'Container; without it main, else the one that asks for accelerators'
            cand -n 'Namespace; that of the kubeconfig''s context without it'
            cand --namespace 'Namespace; that of the kubeconfig''s context without it'
            cand --context 'Context of the kubeconfig'
            cand --kubeconfig 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod''s own service account'
            cand --as 'User to act as'
            cand --as-group 'Group to act as; may be given several times'
            cand --via 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server'
            cand --request-timeout 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl'
            cand --timeout 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair'
            cand --concurrency 'Containers that are looked into at once'
            cand --all 'Every pod of the namespace that looks like a KV worker, by its labels or its engine''s flags'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;explain'= {
            cand -h 'Print help'
            cand --help 'Print help'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;vars'= {
            cand --build 'Library build or version to judge for: full-1.23, nixl-1.5.1-wheel, efa-1.23, no-hca-1.23 and so on for UCX_TLS; a UCX version for UCX_NET_DEVICES; an NCCL version for NCCL_IB_HCA'
            cand -o 'text or json; json where a value is judged for a build'
            cand --output 'text or json; json where a value is judged for a build'
            cand --unset 'Judge the unset variable'
            cand -h 'Print help'
            cand --help 'Print help'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;completions'= {
            cand -h 'Print help'
            cand --help 'Print help'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;man'= {
            cand -h 'Print help'
            cand --help 'Print help'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;schema'= {
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
        }
        &'check-interconnect;help'= {
            cand env 'Judge recipes: Kubernetes manifests, before anything is deployed'
            cand node 'RDMA, GPUDirect, NVLink and limits: of this host or container, of pods, or of saved outputs'
            cand nixl 'NIXL in an engine that runs, here or in pods; between two pods; or in saved logs of one or both sides'
            cand check 'A whole deployment: its workers, each and held against each other, prefill against decode'
            cand collect 'Save everything that check would judge, of workers of a cluster or of this host, and judge nothing'
            cand replay 'Judge a bundle that collect or check --bundle saved, with the same output'
            cand rbac 'Print the rights that check needs as a Role and a RoleBinding (YAML); nothing is applied'
            cand manifest 'Print what collects from inside a pod where nobody may run a command in it (YAML); nothing is applied'
            cand explain 'What a check or a cause means, when it is no problem, and how to fix it'
            cand vars 'Transport variables: what they do, and what a value does'
            cand completions 'Print a completion script'
            cand man 'Print the manual page (roff)'
            cand schema 'Print the JSON Schema of the report, or of the configuration file'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'check-interconnect;help;env'= {
        }
        &'check-interconnect;help;node'= {
        }
        &'check-interconnect;help;nixl'= {
        }
        &'check-interconnect;help;check'= {
        }
        &'check-interconnect;help;collect'= {
        }
        &'check-interconnect;help;replay'= {
        }
        &'check-interconnect;help;rbac'= {
        }
        &'check-interconnect;help;manifest'= {
        }
        &'check-interconnect;help;explain'= {
        }
        &'check-interconnect;help;vars'= {
        }
        &'check-interconnect;help;completions'= {
        }
        &'check-interconnect;help;man'= {
        }
        &'check-interconnect;help;schema'= {
        }
        &'check-interconnect;help;help'= {
        }
    ]
    $completions[$command]
}
