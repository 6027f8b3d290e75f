{{/* Names that roles, policies and the binaries know are written out in the templates; these depend on values. */}}

{{- define "lockstep.labels" -}}
app.kubernetes.io/part-of: lockstep
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* How the API server calls the controller. */}}
{{- define "lockstep.manager.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.manager.serviceAccount }}
{{- end }}

{{/* The rules about namespaces in which TrainJobs are. */}}
{{- define "lockstep.manager.rights" }}
{{ .Files.Get "rights/namespaced.yaml" }}
{{- if ne .Values.gangApi "resources" }}
{{ .Files.Get "rights/gangs-native.yaml" }}
{{- end }}
{{- if ne .Values.gangApi "native" }}
{{ .Files.Get "rights/gangs-resources.yaml" }}
{{- end }}
{{- end }}

{{/* The image of a command: a list of the root and the command's name. */}}
{{- define "lockstep.image" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $image := $root.Values.image -}}
{{- with $image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ $name }}
{{- with index $image.digests $name }}@{{ . }}{{ else }}:{{ $image.tag | default $root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Not empty if an object that was looked up is not there, or is of this release: a list of the root and the object. */}}
{{- define "lockstep.ours" -}}
{{- $root := index . 0 }}{{ $live := index . 1 -}}
{{- $of := dig "metadata" "annotations" dict $live -}}
{{- if or (not $live) (and (eq (get $of "meta.helm.sh/release-name") $root.Release.Name)
  (eq (get $of "meta.helm.sh/release-namespace") $root.Release.Namespace)) -}}
true
{{- end -}}
{{- end }}

{{/* What the schema cannot say about values. */}}
{{- define "lockstep.check" -}}
{{- $jobset := lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" "jobset-validating-webhook-configuration" }}
{{- if and .Values.jobset.install (not (include "lockstep.ours" (list . $jobset))) }}
{{- fail "jobset.install: JobSet is installed already: set jobset.install=false" }}
{{- end }}
{{- if and .Values.takeOver .Values.namespaces }}
{{- fail "takeOver: must not be with namespaces: the TrainJobs of other namespaces would have no controller" }}
{{- end }}
{{- range $flag, $field := dict "--webhook-port" "webhook.port" "--status-server-port" "statusServer.port"
  "--metrics-bind-address" "metrics.bindAddress" "--health-probe-bind-address" "health.healthProbeBindAddress" }}
{{- range $.Values.manager.args }}
{{- if eq (first (splitList "=" .)) $flag }}
{{- fail (printf "manager.args: %s: set manager.config.%s, which the ports of pods and Services follow" $flag $field) }}
{{- end }}
{{- end }}
{{- end }}
{{- $ports := list }}
{{- range list "webhook" "status" "metrics" "health" }}
{{- $port := include (printf "lockstep.manager.port.%s" .) $ | trim }}
{{- if and (eq . "health") (eq $port "0") }}
{{- fail "manager.config.health.healthProbeBindAddress: must have a port: the pods' probes need it" }}
{{- end }}
{{- if has $port $ports }}
{{- fail (printf "manager.config: webhook.port, statusServer.port, metrics.bindAddress and health.healthProbeBindAddress must differ: two have port %s" $port) }}
{{- end }}
{{- $ports = append $ports $port }}
{{- end }}
{{- range $field, $name := dict "webhookServiceName" "lockstep-controller-webhook" "webhookSecretName" "lockstep-webhook-cert" }}
{{- $set := get (($.Values.manager.config).certManagement | default dict) $field }}
{{- if and $set (ne $set $name) }}
{{- fail (printf "manager.config.certManagement.%s: must be %s or left out: the chart's objects and roles have that name" $field $name) }}
{{- end }}
{{- end }}
{{- end }}
