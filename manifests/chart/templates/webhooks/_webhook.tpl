{{/* What the API server asks about objects of trainer.kubeflow.org: a list of the root, mutate or validate, the kind in small letters, and a
condition in CEL where Kubeflow Trainer keeps the jobs that are not chosen. */}}
{{- define "lockstep.webhook" -}}
{{- $root := index . 0 }}{{ $does := index . 1 }}{{ $kind := index . 2 }}{{ $chosen := index . 3 -}}
- name: {{ ternary "defaulter" "validator" (eq $does "mutate") }}.{{ $kind }}.trainer.kubeflow.org
  admissionReviewVersions: [v1]
  clientConfig:
    service:
      name: lockstep-controller-webhook
      namespace: {{ $root.Release.Namespace }}
      path: /{{ $does }}-trainer-kubeflow-org-v1alpha1-{{ $kind }}
  failurePolicy: {{ $root.Values.webhook.failurePolicy }}
  matchPolicy: Equivalent
  {{- with $root.Values.namespaces }}
  namespaceSelector:
    matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: In
      values:
      {{- toYaml . | nindent 6 }}
  {{- end }}
  {{- if ne $kind "trainjob" }}
  # Whoever ships runtimes can install them before the webhooks answer.
  objectSelector:
    matchExpressions:
    - key: trainer.kubeflow.org/webhook-validation
      operator: NotIn
      values: [disabled]
  {{- else if eq $root.Values.manage "chosen" }}
  # Jobs of Kubeflow Trainer go on while Lockstep is away. Who manages a job cannot change.
  matchConditions:
  - name: chosen
    expression: {{ $chosen | quote }}
  {{- end }}
  rules:
  - apiGroups: [trainer.kubeflow.org]
    apiVersions: [v1alpha1]
    operations: [CREATE, UPDATE]
    resources: [{{ $kind }}s]
  sideEffects: None
  timeoutSeconds: 10
{{- end }}

{{/* A CEL expression: whether a variable is a TrainJob of Lockstep's. */}}
{{- define "lockstep.managed" -}}
has({{ . }}.spec.managedBy) && {{ . }}.spec.managedBy == 'lockstep.dev/trainjob-controller'
{{- end }}
