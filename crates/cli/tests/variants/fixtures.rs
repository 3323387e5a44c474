//! Recipes of our own, so that a checkout without the corpus tests the same kinds.

pub fn all() -> Vec<(String, String)> {
    [
        ("graph-argv.yaml", GRAPH_ARGV),
        ("deployments-sglang.yaml", DEPLOYMENTS_SGLANG),
        ("deployments-mooncake.yaml", DEPLOYMENTS_MOONCAKE),
        ("graph-trtllm.yaml", GRAPH_TRTLLM),
        ("deployments-side-channel.yaml", DEPLOYMENTS_SIDE_CHANNEL),
        ("graph-efa.yaml", GRAPH_EFA),
    ]
    .into_iter()
    .map(|(n, t)| (n.to_owned(), t.to_owned()))
    .collect()
}

const GRAPH_ARGV: &str = r#"apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata:
  name: chat
spec:
  backendFramework: vllm
  components:
  - name: Frontend
    type: frontend
    podTemplate:
      spec:
        containers:
        - name: main
          image: example.org/vllm-runtime:1.3.0
          command: [python3, -m, dynamo.frontend]
  - name: Prefill
    type: prefill
    podTemplate:
      spec:
        containers:
        - name: main
          image: example.org/vllm-runtime:1.3.0
          command: [python3, -m, dynamo.vllm]
          args:
          - --model
          - some/model
          - --disaggregation-mode
          - prefill
          - --kv-transfer-config
          - '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'
          env:
          - name: UCX_TLS
            value: rc,cuda_copy,cuda_ipc
          - name: UCX_NET_DEVICES
            value: "mlx5_0:1,mlx5_1:1"
          - name: UCX_IB_GPU_DIRECT_RDMA
            value: "y"
          resources:
            limits: {nvidia.com/gpu: 2, rdma/ib: 2}
          securityContext:
            capabilities:
              add: [IPC_LOCK]
  - name: Decode
    type: decode
    podTemplate:
      spec:
        containers:
        - name: main
          image: example.org/vllm-runtime:1.3.0
          command: [python3, -m, dynamo.vllm]
          args:
          - --model
          - some/model
          - --disaggregation-mode
          - decode
          - --kv-transfer-config
          - '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'
          env:
          - name: UCX_TLS
            value: rc,cuda_copy,cuda_ipc
          - name: UCX_NET_DEVICES
            value: "mlx5_0:1,mlx5_1:1"
          - name: UCX_IB_GPU_DIRECT_RDMA
            value: "y"
          resources:
            limits: {nvidia.com/gpu: 2, rdma/ib: 2}
          securityContext:
            capabilities:
              add: [IPC_LOCK]
"#;

const DEPLOYMENTS_SGLANG: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: sg-prefill
spec:
  template:
    spec:
      containers:
      - name: engine
        image: lmsysorg/sglang:v0.5.3
        command: [/bin/bash, -c]
        args:
        - |
          set -e
          exec python3 -m sglang.launch_server \
            --model-path some/model \
            --disaggregation-mode prefill \
            --disaggregation-transfer-backend nixl \
            --host 0.0.0.0
        env:
        - name: SGLANG_DISAGGREGATION_NIXL_BACKEND
          value: UCX
        - name: UCX_TLS
          value: "^cuda_ipc"
        resources:
          limits:
            nvidia.com/gpu: 1
            rdma/ib: 1
        securityContext:
          privileged: true
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: sg-decode
spec:
  template:
    spec:
      containers:
      - name: engine
        image: lmsysorg/sglang:v0.5.3
        command: [/bin/bash, -c]
        args:
        - |
          set -e
          exec python3 -m sglang.launch_server \
            --model-path some/model \
            --disaggregation-mode decode \
            --disaggregation-transfer-backend nixl \
            --host 0.0.0.0
        env:
        - name: SGLANG_DISAGGREGATION_NIXL_BACKEND
          value: UCX
        - name: UCX_TLS
          value: "^cuda_ipc"
        resources:
          limits:
            nvidia.com/gpu: 1
            rdma/ib: 1
        securityContext:
          privileged: true
"#;

const DEPLOYMENTS_MOONCAKE: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: moon-prefill
spec:
  template:
    spec:
      containers:
      - name: engine
        image: lmsysorg/sglang:v0.5.3
        command: [python3, -m, sglang.launch_server]
        args:
        - --model-path=some/model
        - --disaggregation-mode=prefill
        - --disaggregation-transfer-backend=mooncake
        - --disaggregation-ib-device=mlx5_0,mlx5_1
        env:
        - name: MC_TE_METRIC
          value: "true"
        resources:
          limits: {nvidia.com/gpu: 2, rdma/hca_shared_devices_a: 1}
        securityContext:
          capabilities: {add: [IPC_LOCK]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: moon-decode
spec:
  template:
    spec:
      containers:
      - name: engine
        image: lmsysorg/sglang:v0.5.3
        command: [python3, -m, sglang.launch_server]
        args:
        - --model-path=some/model
        - --disaggregation-mode=decode
        - --disaggregation-transfer-backend=mooncake
        - --disaggregation-ib-device=mlx5_0,mlx5_1
        env:
        - name: MC_TE_METRIC
          value: "true"
        resources:
          limits: {nvidia.com/gpu: 2, rdma/hca_shared_devices_a: 1}
        securityContext:
          capabilities: {add: [IPC_LOCK]}
"#;

const GRAPH_TRTLLM: &str = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: engine
data:
  prefill.yaml: |
    tensor_parallel_size: 1
    cache_transceiver_config:
      backend: DEFAULT
  decode.yaml: |
    tensor_parallel_size: 1
    cache_transceiver_config:
      backend: DEFAULT
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: trt
spec:
  backendFramework: trtllm
  services:
    Prefill:
      componentType: worker
      subComponentType: prefill
      resources:
        limits:
          gpu: "1"
          custom: {rdma/ib: "1"}
      extraPodSpec:
        volumes:
        - name: engine
          configMap: {name: engine}
        mainContainer:
          image: example.org/tensorrtllm-runtime:1.3.0
          command: [python3, -m, dynamo.trtllm]
          args: [--model-path, some/model, --disaggregation-mode, prefill, --extra-engine-args, /etc/engine/prefill.yaml]
          volumeMounts:
          - {name: engine, mountPath: /etc/engine}
          env:
          - name: UCX_TLS
            value: rc,cuda_copy,cuda_ipc,tcp
          - name: TRTLLM_NIXL_KVCACHE_BACKEND
            value: UCX
          securityContext:
            capabilities:
              add:
              - IPC_LOCK
    Decode:
      componentType: worker
      subComponentType: decode
      resources:
        limits:
          gpu: "1"
          custom: {rdma/ib: "1"}
      extraPodSpec:
        volumes:
        - name: engine
          configMap: {name: engine}
        mainContainer:
          image: example.org/tensorrtllm-runtime:1.3.0
          command: [python3, -m, dynamo.trtllm]
          args: [--model-path, some/model, --disaggregation-mode, decode, --extra-engine-args, /etc/engine/decode.yaml]
          volumeMounts:
          - {name: engine, mountPath: /etc/engine}
          env:
          - name: UCX_TLS
            value: rc,cuda_copy,cuda_ipc,tcp
          - name: TRTLLM_NIXL_KVCACHE_BACKEND
            value: UCX
          securityContext:
            capabilities:
              add:
              - IPC_LOCK
"#;

const DEPLOYMENTS_SIDE_CHANNEL: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: llm-prefill
  labels: {app: llm}
spec:
  template:
    metadata:
      labels: {llm-d.ai/role: prefill}
    spec:
      containers:
      - name: vllm
        image: ghcr.io/example/vllm-openai:v0.11.0
        command: [vllm, serve]
        args:
        - some/model
        - --block-size=64
        - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_both"}
        env:
        - name: VLLM_NIXL_SIDE_CHANNEL_HOST
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        - name: UCX_TLS
          value: all
        resources:
          limits: {nvidia.com/gpu: 1, rdma/ib: 1}
        securityContext:
          capabilities: {add: [IPC_LOCK]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: llm-decode
  labels: {app: llm}
spec:
  template:
    metadata:
      labels: {llm-d.ai/role: decode}
    spec:
      containers:
      - name: vllm
        image: ghcr.io/example/vllm-openai:v0.11.0
        command: [vllm, serve]
        args:
        - some/model
        - --block-size=64
        - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_both"}
        env:
        - name: VLLM_NIXL_SIDE_CHANNEL_HOST
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        - name: UCX_TLS
          value: all
        resources:
          limits: {nvidia.com/gpu: 1, rdma/ib: 1}
        securityContext:
          capabilities: {add: [IPC_LOCK]}
"#;

const GRAPH_EFA: &str = r#"apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: on-efa
spec:
  backendFramework: vllm
  services:
    PrefillWorker:
      componentType: worker
      subComponentType: prefill
      resources:
        limits:
          gpu: "8"
          custom:
            vpc.amazonaws.com/efa: "8"
      extraPodSpec:
        mainContainer:
          image: example.org/vllm-runtime:1.3.0-efa
          command: ["/bin/sh", "-c"]
          args:
          - |
            exec python3 -m dynamo.vllm --model some/model --disaggregation-mode prefill --kv-transfer-config "${KV}"
          env:
          - name: KV
            value: '{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_connector_extra_config":{"backends":["LIBFABRIC"]}}'
          - name: FI_PROVIDER
            value: efa
          - name: FI_EFA_USE_DEVICE_RDMA
            value: "1"
          securityContext:
            privileged: true
    DecodeWorker:
      componentType: worker
      subComponentType: decode
      resources:
        limits:
          gpu: "8"
          custom:
            vpc.amazonaws.com/efa: "8"
      extraPodSpec:
        mainContainer:
          image: example.org/vllm-runtime:1.3.0-efa
          command: ["/bin/sh", "-c"]
          args:
          - |
            exec python3 -m dynamo.vllm --model some/model --disaggregation-mode decode --kv-transfer-config "${KV}"
          env:
          - name: KV
            value: '{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_connector_extra_config":{"backends":["LIBFABRIC"]}}'
          - name: FI_PROVIDER
            value: efa
          - name: FI_EFA_USE_DEVICE_RDMA
            value: "1"
          securityContext:
            privileged: true
"#;
