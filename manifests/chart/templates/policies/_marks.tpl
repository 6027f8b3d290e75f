{{/* The labels and annotations by which other controllers mark members of gangs (scheduler/dialects), as JSON; but for Jobs, whose label all of their pods have. */}}
{{- define "lockstep.marks" -}}
{{- $labels := list "scheduling.x-k8s.io/pod-group" "kueue.x-k8s.io/pod-group-name" "leaderworkerset.sigs.k8s.io/name" "jobset.sigs.k8s.io/jobset-name" }}
{{- $annotations := list "kueue.x-k8s.io/pod-group-name" }}
{{- range dig "GangPlacement" "dialects" list .Values.scheduler.pluginArgs }}
{{- $labels = concat $labels (dig "member" "labels" list .) }}
{{- $annotations = concat $annotations (dig "member" "annotations" list .) }}
{{- end }}
{{- dict "labels" (uniq $labels) "annotations" (uniq $annotations) | toJson }}
{{- end }}

{{/* The names of Lockstep's scheduler as a list in CEL. */}}
{{- define "lockstep.scheduler.names" -}}
['{{ prepend (.Values.scheduler.aliases | default list) "lockstep-scheduler" | join "', '" }}']
{{- end }}
