{{/* A Job of lockstep's image for the time of a Helm action, with an account that is gone when it has succeeded: a map of root, name, hook, the
arguments of the command and the rules of the account. Its pods have no priority class: the release's own may not be there yet, or any more. */}}
{{- define "lockstep.hook" }}
{{- $root := .root }}{{ $name := .name }}{{ $hook := .hook -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "lockstep.labels" $root | nindent 4 }}
  annotations:
    {{- include "lockstep.hook.annotations" (list $hook "-10") | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- include "lockstep.labels" $root | nindent 4 }}
  annotations:
    {{- include "lockstep.hook.annotations" (list $hook "-10") | nindent 4 }}
rules:
{{ .rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "lockstep.labels" $root | nindent 4 }}
  annotations:
    {{- include "lockstep.hook.annotations" (list $hook "-10") | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "lockstep.labels" $root | nindent 4 }}
  annotations:
    {{- include "lockstep.hook.annotations" (list $hook "0") | nindent 4 }}
spec:
  backoffLimit: 3
  activeDeadlineSeconds: 300
  template:
    metadata:
      labels: {app.kubernetes.io/name: {{ $name }}}
    spec:
      restartPolicy: Never
      serviceAccountName: {{ $name }}
      {{- include "lockstep.pod.security" $root | nindent 6 }}
      {{- with $root.Values.manager.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.manager.tolerations }}
      tolerations:
      {{- toYaml . | nindent 6 }}
      {{- end }}
      containers:
      - name: lockstep
        {{- include "lockstep.container" (list $root "lockstep" $root.Values.hooks) | nindent 8 }}
        args: {{ toJson .args }}
{{- end }}

{{- define "lockstep.hook.annotations" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* The names of CRDs in the cluster that say something else than those of the chart. */}}
{{- define "lockstep.crds.stale" -}}
{{- range $file, $content := .Files.Glob "crds/*.yaml" }}
{{- $parts := splitList "_" (base $file | trimSuffix ".yaml") }}
{{- $name := printf "%s.%s" (last $parts) (first $parts) }}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- $ours := regexFind "lockstep.dev/schema: \\S+" (toString $content) | trimPrefix "lockstep.dev/schema: " }}
{{- if ne $ours (dig "metadata" "annotations" "lockstep.dev/schema" "" .) }} {{ $name }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
