{{/* What all pods have that are of Lockstep's images. */}}
{{- define "lockstep.pod.security" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- /* Values of an older release have no map at all; one without an entry means that the cluster chooses. */}}
{{- $ids := dict "runAsUser" 65532 "runAsGroup" 65532 }}
{{- if kindIs "map" .Values.podSecurityContext }}
{{- $ids = .Values.podSecurityContext }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- range $field, $id := $ids }}
  {{- if not (kindIs "invalid" $id) }}
  {{ $field }}: {{ int64 $id }}
  {{- end }}
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* What the pods of Deployments have: a list of the root, the name of the pods and the values about them. */}}
{{- define "lockstep.pod" }}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $values := index . 2 -}}
{{ include "lockstep.pod.security" $root }}
priorityClassName: {{ $root.Values.priorityClassName }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
{{- toYaml . | nindent 0 }}
{{- end }}
# While no replica answers no TrainJob can be created, and none starts: they should share neither a machine nor a zone.
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {app.kubernetes.io/name: {{ $name }}}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}

{{/* What all containers have: a list of the root, the name of the image and the values about it. */}}
{{- define "lockstep.container" }}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $values := index . 2 -}}
image: {{ include "lockstep.image" (list $root $name) }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources:
  {{- toYaml $values.resources | nindent 2 }}
{{- end }}

{{/* Annotations by which pods are replaced when a file that they read changes: a list of the file's text and the values about the pods. */}}
{{- define "lockstep.pod.annotations" -}}
lockstep.dev/configuration: {{ index . 0 | sha256sum | trunc 16 | quote }}
{{- with (index . 1).podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* At most one replica goes at a time of its own accord: a list of the root and the name of the pods. */}}
{{- define "lockstep.budget" }}
{{- $root := index . 0 }}{{ $name := index . 1 -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "lockstep.labels" $root | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {app.kubernetes.io/name: {{ $name }}}
{{- end }}
