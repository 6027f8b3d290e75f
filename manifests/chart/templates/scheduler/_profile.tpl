{{/* profile.yaml with what it keeps in the release's namespace, with the rates of .Values.scheduler, its arguments of plugins, and its profile once more
  under each alias. */}}
{{- define "lockstep.scheduler.profile" -}}
{{- $profile := .Files.Get "profile.yaml" | fromYaml }}
{{- $_ := set $profile.leaderElection "resourceNamespace" .Release.Namespace }}
{{- $_ := mergeOverwrite $profile.clientConnection .Values.scheduler.clientConnection }}
{{- $ours := dict "GangPlacement" (dict "leases" (dict "namespace" .Release.Namespace)) }}
{{- if ne (((.Values.neighbors).demand).mode | default "pods") "pods" }}
{{- $_ := set $ours.GangPlacement "demand" .Values.neighbors.demand }}
{{- end }}
{{- $arguments := mergeOverwrite $ours (deepCopy .Values.scheduler.pluginArgs) }}
{{- $first := first $profile.profiles }}
{{- range $first.pluginConfig }}
{{- $_ := mergeOverwrite .args (get $arguments .name | default dict) }}
{{- $_ := unset $arguments .name }}
{{- end }}
{{- range $name, $args := $arguments }}
{{- $_ := set $first "pluginConfig" (append $first.pluginConfig (dict "name" $name "args" $args)) }}
{{- end }}
{{- range .Values.scheduler.aliases }}
{{- $_ := set $profile "profiles" (append $profile.profiles (set (deepCopy $first) "schedulerName" .)) }}
{{- end }}
{{- toYaml $profile }}
{{- end }}
