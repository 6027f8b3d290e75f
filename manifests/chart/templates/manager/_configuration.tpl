{{- define "lockstep.manager.configuration" -}}
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
{{ toYaml .Values.manager.config }}
{{- end }}

{{/* Ports of the configuration file, or else the controller's defaults. Service, NetworkPolicy and probes know container ports by name. */}}
{{- define "lockstep.manager.port.webhook" -}}
{{ int (((.Values.manager.config).webhook).port | default 9443) }}
{{- end }}

{{- define "lockstep.manager.port.status" -}}
{{ int (((.Values.manager.config).statusServer).port | default 10443) }}
{{- end }}

{{/* Of addresses only the port; 0 serves no metrics. */}}
{{- define "lockstep.manager.port.metrics" -}}
{{ int (last (splitList ":" (((.Values.manager.config).metrics).bindAddress | default ":8443"))) }}
{{- end }}

{{- define "lockstep.manager.port.health" -}}
{{ int (last (splitList ":" (((.Values.manager.config).health).healthProbeBindAddress | default ":8081"))) }}
{{- end }}

{{- define "lockstep.manager.arguments" -}}
- --config=/etc/lockstep/configuration.yaml
- --namespace={{ .Release.Namespace }}
- --leader-elect=true
- --gang-default={{ .Values.gangs.default }}
{{- if ne .Values.gangApi "auto" }}
- --gang-api={{ .Values.gangApi }}
{{- end }}
{{- with .Values.namespaces }}
- --namespaces={{ join "," . }}
{{- end }}
{{- if ne .Values.manage "all" }}
- --manage={{ .Values.manage }}
{{- end }}
{{- with .Values.takeOver }}
- --take-over={{ . }}
{{- end }}
{{- range (((.Values.neighbors).nodes).shapes) }}
{{- $resources := list }}
{{- range $name, $quantity := . }}
{{- $resources = append $resources (printf "%s=%v" $name $quantity) }}
{{- end }}
- --node-shape={{ join "," $resources }}
{{- end }}
{{- if (((.Values.neighbors).nodes).complete) }}
- --nodes-complete
{{- end }}
{{- with .Values.manager.args }}
{{ toYaml . }}
{{- end }}
{{- end }}
