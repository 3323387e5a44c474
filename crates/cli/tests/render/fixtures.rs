//! Recipes that the tests share.

/// Prefill and decode over UCX without a device: blocked.
pub(crate) const GRAPH: &str = r#"apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: disagg
spec:
  services:
    prefill:
      componentType: worker
      subComponentType: prefill
      resources:
        limits: {gpu: "4"}
      extraPodSpec:
        mainContainer:
          image: vllm-runtime:0.7.0
          command: [python3, -m, dynamo.vllm]
          args: [--model, m, --is-prefill-worker, --kv-transfer-config, '{"kv_connector":"NixlConnector","kv_role":"kv_both"}']
          env:
          - {name: UCX_TLS, value: "rc,cuda_copy,cuda_ipc"}
    decode:
      componentType: worker
      subComponentType: decode
      resources:
        limits: {gpu: "4"}
      extraPodSpec:
        mainContainer:
          image: vllm-runtime:0.7.0
          command: [python3, -m, dynamo.vllm]
          args: [--model, m, --kv-transfer-config, '{"kv_connector":"NixlConnector","kv_role":"kv_both"}']
          env:
          - {name: UCX_TLS, value: "rc,cuda_copy,cuda_ipc"}
"#;

/// Gives both roles of it an RDMA device.
pub(crate) const RDMA: &str = r#"apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: disagg}
spec:
  services:
    prefill: {resources: {limits: {custom: {rdma/ib: "4"}}}}
    decode: {resources: {limits: {custom: {rdma/ib: "4"}}}}
"#;

/// A JSON patch that takes the device's place by UCX_TLS=tcp, by index.
pub(crate) const TCP: &str = "- op: replace
  path: /spec/services/prefill/extraPodSpec/mainContainer/env/0/value
  value: tcp
";

/// The same deployment as a chart; `rdma` asks for the device.
pub(crate) const TEMPLATE: &str = r#"apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: {{ .Release.Name }}
spec:
  services:
    {{- range $role := list "prefill" "decode" }}
    {{ $role }}:
      componentType: worker
      subComponentType: {{ $role }}
      resources:
        limits:
          gpu: "4"
          {{- if $.Values.rdma }}
          custom: {rdma/ib: "4"}
          {{- end }}
      extraPodSpec:
        mainContainer:
          image: vllm-runtime:0.7.0
          command: [python3, -m, dynamo.vllm]
          args: [--model, m, --kv-transfer-config, '{"kv_connector":"NixlConnector","kv_role":"kv_both"}']
          env:
          - {name: UCX_TLS, value: "rc,cuda_copy,cuda_ipc"}
    {{- end }}
"#;
