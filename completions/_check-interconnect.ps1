
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'check-interconnect' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'check-interconnect'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'check-interconnect' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('env', 'env', [CompletionResultType]::ParameterValue, 'Judge recipes: Kubernetes manifests, before anything is deployed')
            [CompletionResult]::new('node', 'node', [CompletionResultType]::ParameterValue, 'RDMA, GPUDirect, NVLink and limits: of this host or container, of pods, or of saved outputs')
            [CompletionResult]::new('nixl', 'nixl', [CompletionResultType]::ParameterValue, 'NIXL in an engine that runs, here or in pods; between two pods; or in saved logs of one or both sides')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'A whole deployment: its workers, each and held against each other, prefill against decode')
            [CompletionResult]::new('collect', 'collect', [CompletionResultType]::ParameterValue, 'Save everything that check would judge, of workers of a cluster or of this host, and judge nothing')
            [CompletionResult]::new('replay', 'replay', [CompletionResultType]::ParameterValue, 'Judge a bundle that collect or check --bundle saved, with the same output')
            [CompletionResult]::new('rbac', 'rbac', [CompletionResultType]::ParameterValue, 'Print the rights that check needs as a Role and a RoleBinding (YAML); nothing is applied')
            [CompletionResult]::new('manifest', 'manifest', [CompletionResultType]::ParameterValue, 'Print what collects from inside a pod where nobody may run a command in it (YAML); nothing is applied')
            [CompletionResult]::new('explain', 'explain', [CompletionResultType]::ParameterValue, 'What a check or a cause means, when it is no problem, and how to fix it')
            [CompletionResult]::new('vars', 'vars', [CompletionResultType]::ParameterValue, 'Transport variables: what they do, and what a value does')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print a completion script')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print the manual page (roff)')
            [CompletionResult]::new('schema', 'schema', [CompletionResultType]::ParameterValue, 'Print the JSON Schema of the report, or of the configuration file')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'check-interconnect;env' {
            [CompletionResult]::new('--render-timeout', '--render-timeout', [CompletionResultType]::ParameterName, 'How long kubectl, kustomize or helm may take for one of them')
            [CompletionResult]::new('--values', '--values', [CompletionResultType]::ParameterName, 'Values for the Helm charts, as helm''s option of that name; may be given several times')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Configuration file, instead of check-interconnect.toml here or above, up to the repository''s root')
            [CompletionResult]::new('--baseline', '--baseline', [CompletionResultType]::ParameterName, 'Findings in this file are known and count as ok')
            [CompletionResult]::new('--write-baseline', '--write-baseline', [CompletionResultType]::ParameterName, 'Write all findings that count into this file, and count them as known')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to color text')
            [CompletionResult]::new('--fail-on', '--fail-on', [CompletionResultType]::ParameterName, 'From what on to exit with 1')
            [CompletionResult]::new('--no-render', '--no-render', [CompletionResultType]::ParameterName, 'Do not render kustomizations and Helm charts; judge their parts as they are')
            [CompletionResult]::new('--no-config', '--no-config', [CompletionResultType]::ParameterName, 'Use no configuration file')
            [CompletionResult]::new('--fix', '--fix', [CompletionResultType]::ParameterName, 'Put right what has only one right text, such as a space in UCX_TLS, and judge the result')
            [CompletionResult]::new('--diff', '--diff', [CompletionResultType]::ParameterName, 'Print what --fix would change, as a patch, and change nothing; it has no other format')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell every result in full')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell every result in full')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;node' {
            [CompletionResult]::new('--from', '--from', [CompletionResultType]::ParameterName, 'Judge saved or pasted outputs of tools and logs instead, as one picture; - is standard input')
            [CompletionResult]::new('--role', '--role', [CompletionResultType]::ParameterName, 'What runs there, where nothing else tells: the lack of a fabric is then a failure')
            [CompletionResult]::new('--pod', '--pod', [CompletionResultType]::ParameterName, 'Pod to look into; may be given several times')
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Pods with these labels, as kubectl''s option of that name')
            [CompletionResult]::new('--selector', '--selector', [CompletionResultType]::ParameterName, 'Pods with these labels, as kubectl''s option of that name')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Container; without it main, else the one that asks for accelerators')
            [CompletionResult]::new('--container', '--container', [CompletionResultType]::ParameterName, 'Container; without it main, else the one that asks for accelerators')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Namespace; that of the kubeconfig''s context without it')
            [CompletionResult]::new('--namespace', '--namespace', [CompletionResultType]::ParameterName, 'Namespace; that of the kubeconfig''s context without it')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'Context of the kubeconfig')
            [CompletionResult]::new('--kubeconfig', '--kubeconfig', [CompletionResultType]::ParameterName, 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod''s own service account')
            [CompletionResult]::new('--as', '--as', [CompletionResultType]::ParameterName, 'User to act as')
            [CompletionResult]::new('--as-group', '--as-group', [CompletionResultType]::ParameterName, 'Group to act as; may be given several times')
            [CompletionResult]::new('--via', '--via', [CompletionResultType]::ParameterName, 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server')
            [CompletionResult]::new('--request-timeout', '--request-timeout', [CompletionResultType]::ParameterName, 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair')
            [CompletionResult]::new('--concurrency', '--concurrency', [CompletionResultType]::ParameterName, 'Containers that are looked into at once')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to color text')
            [CompletionResult]::new('--fail-on', '--fail-on', [CompletionResultType]::ParameterName, 'From what on to exit with 1')
            [CompletionResult]::new('--topology', '--topology', [CompletionResultType]::ParameterName, 'Print which network card serves which GPU, and over what, instead of a verdict; as text or json')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Every pod of the namespace that looks like a KV worker, by its labels or its engine''s flags')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell every result in full')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell every result in full')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;nixl' {
            [CompletionResult]::new('--from', '--from', [CompletionResultType]::ParameterName, 'Judge saved logs of one or both sides; - is standard input')
            [CompletionResult]::new('--role', '--role', [CompletionResultType]::ParameterName, 'What the process is for, where nothing else tells: settings that leave only TCP are then a failure')
            [CompletionResult]::new('--pod', '--pod', [CompletionResultType]::ParameterName, 'Pod to look into; may be given several times')
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Pods with these labels, as kubectl''s option of that name')
            [CompletionResult]::new('--selector', '--selector', [CompletionResultType]::ParameterName, 'Pods with these labels, as kubectl''s option of that name')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Container; without it main, else the one that asks for accelerators')
            [CompletionResult]::new('--container', '--container', [CompletionResultType]::ParameterName, 'Container; without it main, else the one that asks for accelerators')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Namespace; that of the kubeconfig''s context without it')
            [CompletionResult]::new('--namespace', '--namespace', [CompletionResultType]::ParameterName, 'Namespace; that of the kubeconfig''s context without it')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'Context of the kubeconfig')
            [CompletionResult]::new('--kubeconfig', '--kubeconfig', [CompletionResultType]::ParameterName, 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod''s own service account')
            [CompletionResult]::new('--as', '--as', [CompletionResultType]::ParameterName, 'User to act as')
            [CompletionResult]::new('--as-group', '--as-group', [CompletionResultType]::ParameterName, 'Group to act as; may be given several times')
            [CompletionResult]::new('--via', '--via', [CompletionResultType]::ParameterName, 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server')
            [CompletionResult]::new('--request-timeout', '--request-timeout', [CompletionResultType]::ParameterName, 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair')
            [CompletionResult]::new('--concurrency', '--concurrency', [CompletionResultType]::ParameterName, 'Containers that are looked into at once')
            [CompletionResult]::new('--peer', '--peer', [CompletionResultType]::ParameterName, 'The pod at the other end')
            [CompletionResult]::new('--peer-container', '--peer-container', [CompletionResultType]::ParameterName, 'Its container; that of --container without it')
            [CompletionResult]::new('--peer-namespace', '--peer-namespace', [CompletionResultType]::ParameterName, 'Its namespace; that of --namespace without it')
            [CompletionResult]::new('--rate', '--rate', [CompletionResultType]::ParameterName, 'Move so many bytes a second at most, on average (500M, 2G)')
            [CompletionResult]::new('--largest', '--largest', [CompletionResultType]::ParameterName, 'Transfer blocks of so many bytes at most (64M without it); below 16M no rate is judged')
            [CompletionResult]::new('--observe', '--observe', [CompletionResultType]::ParameterName, 'Look at the counters of interfaces and RDMA ports before and after so long, while real requests run; --timeout bounds all of it')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to color text')
            [CompletionResult]::new('--fail-on', '--fail-on', [CompletionResultType]::ParameterName, 'From what on to exit with 1')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Every pod of the namespace that looks like a KV worker, by its labels or its engine''s flags')
            [CompletionResult]::new('--debug-pods', '--debug-pods', [CompletionResultType]::ParameterName, 'Print a pod (YAML) for each of the pods, with the same node, resources, claims and networks and another image, for workers whose image has no NIXL; nothing is applied')
            [CompletionResult]::new('--transfer', '--transfer', [CompletionResultType]::ParameterName, 'Measure a real transfer between --pod and --peer with their own NIXL and their engines'' settings, and tell what carried it. It moves some hundred MiB and takes 64 MiB of memory in each; --timeout bounds all of it')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'Print what would run where, and run nothing in a worker')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Make a NIXL agent, and transfer, also in a pod that does not look like a prefill or decode worker')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell every result in full')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell every result in full')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;check' {
            [CompletionResult]::new('--from-logs', '--from-logs', [CompletionResultType]::ParameterName, 'Judge logs of what manifest prints, without any cluster; - is standard input')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'The recipe that was deployed: its deployments are looked for in the cluster, and held against what runs')
            [CompletionResult]::new('--filename', '--filename', [CompletionResultType]::ParameterName, 'The recipe that was deployed: its deployments are looked for in the cluster, and held against what runs')
            [CompletionResult]::new('--prefill', '--prefill', [CompletionResultType]::ParameterName, 'Labels of the prefill workers, where neither labels nor flags that are known tell roles')
            [CompletionResult]::new('--decode', '--decode', [CompletionResultType]::ParameterName, 'Labels of the decode workers')
            [CompletionResult]::new('--depth', '--depth', [CompletionResultType]::ParameterName, 'What is looked at beside each worker''s own')
            [CompletionResult]::new('--run-timeout', '--run-timeout', [CompletionResultType]::ParameterName, 'How long all of it may take (10m); what is not there by then is told as missing. No limit without it')
            [CompletionResult]::new('--pod', '--pod', [CompletionResultType]::ParameterName, 'Pod to look into; may be given several times')
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Pods with these labels, as kubectl''s option of that name')
            [CompletionResult]::new('--selector', '--selector', [CompletionResultType]::ParameterName, 'Pods with these labels, as kubectl''s option of that name')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Container; without it main, else the one that asks for accelerators')
            [CompletionResult]::new('--container', '--container', [CompletionResultType]::ParameterName, 'Container; without it main, else the one that asks for accelerators')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Namespace; that of the kubeconfig''s context without it')
            [CompletionResult]::new('--namespace', '--namespace', [CompletionResultType]::ParameterName, 'Namespace; that of the kubeconfig''s context without it')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'Context of the kubeconfig')
            [CompletionResult]::new('--kubeconfig', '--kubeconfig', [CompletionResultType]::ParameterName, 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod''s own service account')
            [CompletionResult]::new('--as', '--as', [CompletionResultType]::ParameterName, 'User to act as')
            [CompletionResult]::new('--as-group', '--as-group', [CompletionResultType]::ParameterName, 'Group to act as; may be given several times')
            [CompletionResult]::new('--via', '--via', [CompletionResultType]::ParameterName, 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server')
            [CompletionResult]::new('--request-timeout', '--request-timeout', [CompletionResultType]::ParameterName, 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair')
            [CompletionResult]::new('--concurrency', '--concurrency', [CompletionResultType]::ParameterName, 'Containers that are looked into at once')
            [CompletionResult]::new('--pairs', '--pairs', [CompletionResultType]::ParameterName, 'Which pairs: all, ring (each worker at least once), or so many')
            [CompletionResult]::new('--rate', '--rate', [CompletionResultType]::ParameterName, 'Move so many bytes a second at most in each pair, on average (500M, 2G)')
            [CompletionResult]::new('--largest', '--largest', [CompletionResultType]::ParameterName, 'Transfer blocks of so many bytes at most (64M without it); below 16M no rate is judged')
            [CompletionResult]::new('--bundle', '--bundle', [CompletionResultType]::ParameterName, 'Save everything that was observed into this file; replay judges it anywhere')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to color text')
            [CompletionResult]::new('--fail-on', '--fail-on', [CompletionResultType]::ParameterName, 'From what on to exit with 1')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Every pod of the namespace that looks like a KV worker, by its labels or its engine''s flags')
            [CompletionResult]::new('--transfer', '--transfer', [CompletionResultType]::ParameterName, 'Measure real transfers between prefill and decode workers with their own NIXL and their engines'' settings, in rounds in which no worker takes part twice. Each moves some hundred MiB and takes 64 MiB of memory in each; --timeout bounds each')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'Print what would run where, and run nothing in a worker but the look')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell every result in full')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell every result in full')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;collect' {
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'File to save it in')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'File to save it in')
            [CompletionResult]::new('--role', '--role', [CompletionResultType]::ParameterName, 'What this host is for, where no engine that runs here tells')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'The recipe that was deployed: its deployments are looked for in the cluster, and held against what runs')
            [CompletionResult]::new('--filename', '--filename', [CompletionResultType]::ParameterName, 'The recipe that was deployed: its deployments are looked for in the cluster, and held against what runs')
            [CompletionResult]::new('--prefill', '--prefill', [CompletionResultType]::ParameterName, 'Labels of the prefill workers, where neither labels nor flags that are known tell roles')
            [CompletionResult]::new('--decode', '--decode', [CompletionResultType]::ParameterName, 'Labels of the decode workers')
            [CompletionResult]::new('--depth', '--depth', [CompletionResultType]::ParameterName, 'What is looked at beside each worker''s own')
            [CompletionResult]::new('--run-timeout', '--run-timeout', [CompletionResultType]::ParameterName, 'How long all of it may take (10m); what is not there by then is told as missing. No limit without it')
            [CompletionResult]::new('--pod', '--pod', [CompletionResultType]::ParameterName, 'Pod to look into; may be given several times')
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Pods with these labels, as kubectl''s option of that name')
            [CompletionResult]::new('--selector', '--selector', [CompletionResultType]::ParameterName, 'Pods with these labels, as kubectl''s option of that name')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Container; without it main, else the one that asks for accelerators')
            [CompletionResult]::new('--container', '--container', [CompletionResultType]::ParameterName, 'Container; without it main, else the one that asks for accelerators')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Namespace; that of the kubeconfig''s context without it')
            [CompletionResult]::new('--namespace', '--namespace', [CompletionResultType]::ParameterName, 'Namespace; that of the kubeconfig''s context without it')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'Context of the kubeconfig')
            [CompletionResult]::new('--kubeconfig', '--kubeconfig', [CompletionResultType]::ParameterName, 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod''s own service account')
            [CompletionResult]::new('--as', '--as', [CompletionResultType]::ParameterName, 'User to act as')
            [CompletionResult]::new('--as-group', '--as-group', [CompletionResultType]::ParameterName, 'Group to act as; may be given several times')
            [CompletionResult]::new('--via', '--via', [CompletionResultType]::ParameterName, 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server')
            [CompletionResult]::new('--request-timeout', '--request-timeout', [CompletionResultType]::ParameterName, 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair')
            [CompletionResult]::new('--concurrency', '--concurrency', [CompletionResultType]::ParameterName, 'Containers that are looked into at once')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Every pod of the namespace that looks like a KV worker, by its labels or its engine''s flags')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;replay' {
            [CompletionResult]::new('--against', '--against', [CompletionResultType]::ParameterName, 'Tell only what changed since this earlier bundle (several are one deployment here, too); as text or json')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to color text')
            [CompletionResult]::new('--fail-on', '--fail-on', [CompletionResultType]::ParameterName, 'From what on to exit with 1')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell every result in full')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell every result in full')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;rbac' {
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Namespace of the workers')
            [CompletionResult]::new('--namespace', '--namespace', [CompletionResultType]::ParameterName, 'Namespace of the workers')
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'Name of the Role and of its binding')
            [CompletionResult]::new('--user', '--user', [CompletionResultType]::ParameterName, 'User who gets the rights; may be given several times')
            [CompletionResult]::new('--group', '--group', [CompletionResultType]::ParameterName, 'Group that gets them; may be given several times')
            [CompletionResult]::new('--service-account', '--service-account', [CompletionResultType]::ParameterName, 'Service account that gets them; may be given several times')
            [CompletionResult]::new('--nodes', '--nodes', [CompletionResultType]::ParameterName, 'Also a ClusterRole that lists nodes: what they offer, and why a worker waits for one')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;manifest' {
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Pod of a worker, or a workload with a pod template, as YAML or JSON; - is standard input')
            [CompletionResult]::new('--filename', '--filename', [CompletionResultType]::ParameterName, 'Pod of a worker, or a workload with a pod template, as YAML or JSON; - is standard input')
            [CompletionResult]::new('--kind', '--kind', [CompletionResultType]::ParameterName, 'What is printed')
            [CompletionResult]::new('--image', '--image', [CompletionResultType]::ParameterName, 'Image, where no worker is given or another than the worker''s is meant; one with check-interconnect for a cronjob')
            [CompletionResult]::new('--resource', '--resource', [CompletionResultType]::ParameterName, 'Extended resource that the workers ask for (rdma/ib=1), where no worker is given; may be given several times')
            [CompletionResult]::new('--role', '--role', [CompletionResultType]::ParameterName, 'Role of the worker, where nothing else tells')
            [CompletionResult]::new('--textfile-dir', '--textfile-dir', [CompletionResultType]::ParameterName, 'Directory of the node from which its Prometheus exporter reads text files; for a cronjob')
            [CompletionResult]::new('--schedule', '--schedule', [CompletionResultType]::ParameterName, 'When a cronjob runs')
            [CompletionResult]::new('--pod', '--pod', [CompletionResultType]::ParameterName, 'Pod to look into; may be given several times')
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Pods with these labels, as kubectl''s option of that name')
            [CompletionResult]::new('--selector', '--selector', [CompletionResultType]::ParameterName, 'Pods with these labels, as kubectl''s option of that name')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Container; without it main, else the one that asks for accelerators')
            [CompletionResult]::new('--container', '--container', [CompletionResultType]::ParameterName, 'Container; without it main, else the one that asks for accelerators')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Namespace; that of the kubeconfig''s context without it')
            [CompletionResult]::new('--namespace', '--namespace', [CompletionResultType]::ParameterName, 'Namespace; that of the kubeconfig''s context without it')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'Context of the kubeconfig')
            [CompletionResult]::new('--kubeconfig', '--kubeconfig', [CompletionResultType]::ParameterName, 'Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod''s own service account')
            [CompletionResult]::new('--as', '--as', [CompletionResultType]::ParameterName, 'User to act as')
            [CompletionResult]::new('--as-group', '--as-group', [CompletionResultType]::ParameterName, 'Group to act as; may be given several times')
            [CompletionResult]::new('--via', '--via', [CompletionResultType]::ParameterName, 'Go through this program, which takes the arguments of kubectl, instead of speaking to the API server')
            [CompletionResult]::new('--request-timeout', '--request-timeout', [CompletionResultType]::ParameterName, 'How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer each pair')
            [CompletionResult]::new('--concurrency', '--concurrency', [CompletionResultType]::ParameterName, 'Containers that are looked into at once')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Every pod of the namespace that looks like a KV worker, by its labels or its engine''s flags')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;explain' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;vars' {
            [CompletionResult]::new('--build', '--build', [CompletionResultType]::ParameterName, 'Library build or version to judge for: full-1.23, nixl-1.5.1-wheel, efa-1.23, no-hca-1.23 and so on for UCX_TLS; a UCX version for UCX_NET_DEVICES; an NCCL version for NCCL_IB_HCA')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'text or json; json where a value is judged for a build')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'text or json; json where a value is judged for a build')
            [CompletionResult]::new('--unset', '--unset', [CompletionResultType]::ParameterName, 'Judge the unset variable')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;completions' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;man' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;schema' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
        'check-interconnect;help' {
            [CompletionResult]::new('env', 'env', [CompletionResultType]::ParameterValue, 'Judge recipes: Kubernetes manifests, before anything is deployed')
            [CompletionResult]::new('node', 'node', [CompletionResultType]::ParameterValue, 'RDMA, GPUDirect, NVLink and limits: of this host or container, of pods, or of saved outputs')
            [CompletionResult]::new('nixl', 'nixl', [CompletionResultType]::ParameterValue, 'NIXL in an engine that runs, here or in pods; between two pods; or in saved logs of one or both sides')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'A whole deployment: its workers, each and held against each other, prefill against decode')
            [CompletionResult]::new('collect', 'collect', [CompletionResultType]::ParameterValue, 'Save everything that check would judge, of workers of a cluster or of this host, and judge nothing')
            [CompletionResult]::new('replay', 'replay', [CompletionResultType]::ParameterValue, 'Judge a bundle that collect or check --bundle saved, with the same output')
            [CompletionResult]::new('rbac', 'rbac', [CompletionResultType]::ParameterValue, 'Print the rights that check needs as a Role and a RoleBinding (YAML); nothing is applied')
            [CompletionResult]::new('manifest', 'manifest', [CompletionResultType]::ParameterValue, 'Print what collects from inside a pod where nobody may run a command in it (YAML); nothing is applied')
            [CompletionResult]::new('explain', 'explain', [CompletionResultType]::ParameterValue, 'What a check or a cause means, when it is no problem, and how to fix it')
            [CompletionResult]::new('vars', 'vars', [CompletionResultType]::ParameterValue, 'Transport variables: what they do, and what a value does')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print a completion script')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print the manual page (roff)')
            [CompletionResult]::new('schema', 'schema', [CompletionResultType]::ParameterValue, 'Print the JSON Schema of the report, or of the configuration file')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'check-interconnect;help;env' {
            break
        }
        'check-interconnect;help;node' {
            break
        }
        'check-interconnect;help;nixl' {
            break
        }
        'check-interconnect;help;check' {
            break
        }
        'check-interconnect;help;collect' {
            break
        }
        'check-interconnect;help;replay' {
            break
        }
        'check-interconnect;help;rbac' {
            break
        }
        'check-interconnect;help;manifest' {
            break
        }
        'check-interconnect;help;explain' {
            break
        }
        'check-interconnect;help;vars' {
            break
        }
        'check-interconnect;help;completions' {
            break
        }
        'check-interconnect;help;man' {
            break
        }
        'check-interconnect;help;schema' {
            break
        }
        'check-interconnect;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
