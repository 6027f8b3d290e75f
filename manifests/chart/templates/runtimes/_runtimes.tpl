{{/* The runtimes by their values, as a map of file to path of values. The names of values are Kubeflow Trainer's where it has the runtime. */}}
{{- define "lockstep.runtimes" -}}
deepspeed-distributed: deepspeedDistributed
deepspeed-distributed-gpu: deepspeedDistributedGPU
flux-distributed: fluxDistributed
flux-distributed-gpu: fluxDistributedGPU
jax-distributed: jaxDistributed
jax-distributed-gpu: jaxDistributedGPU
mlx-distributed: mlxDistributed
mlx-distributed-gpu: mlxDistributedGPU
plain: plain
plain-gpu: plainGPU
pytorch-distributed-gpu: pytorchDistributedGPU
torch-distributed: torchDistributed
torchtune-llama3.2-1b: torchtuneDistributed.llama3_2_1B
torchtune-llama3.2-3b: torchtuneDistributed.llama3_2_3B
torchtune-qwen2.5-1.5b: torchtuneDistributed.qwen2_5_1_5B
xgboost-distributed: xgboostDistributed
xgboost-distributed-gpu: xgboostDistributedGPU
{{- end }}

{{/* A runtime with the release's labels, and with trainers of another image if values say so: a list of the root, the file's name and the
image's values. Trainers are the containers called node. */}}
{{- define "lockstep.runtime" -}}
{{- $root := index . 0 }}{{ $file := index . 1 }}{{ $image := index . 2 | default dict -}}
{{- $runtime := $root.Files.Get (printf "runtimes/%s.yaml" $file) | fromYaml }}
{{- $labels := mergeOverwrite (include "lockstep.labels" $root | fromYaml) $runtime.metadata.labels $root.Values.runtimes.commonLabels }}
{{- $_ := set $runtime.metadata "labels" $labels }}
{{- range $runtime.spec.template.spec.replicatedJobs }}
{{- range .template.spec.template.spec.containers }}
{{- if eq .name "node" }}
{{- $_ := set . "image" (include "lockstep.runtime.image" (list .image $image)) }}
{{- end }}
{{- end }}
{{- if $root.Values.runtimes.restricted }}
{{- include "lockstep.runtime.restrict" .template.spec.template.spec }}
{{- end }}
{{- end }}
{{- toYaml $runtime }}
{{- end }}

{{/* Changes pods so that Pod Security restricted lets them in: user 1000, no capabilities. An image that has that user has its home; others get an
empty one, and a name for the user, which Python asks for. Trainers start there: Kubeflow's SDK has them write the function where they start. */}}
{{- define "lockstep.runtime.restrict" -}}
{{- $pod := . }}
{{- $_ := set $pod "securityContext" (mergeOverwrite (dict "runAsNonRoot" true "runAsUser" 1000 "fsGroup" 1000
  "seccompProfile" (dict "type" "RuntimeDefault")) ($pod.securityContext | default dict)) }}
{{- range $pod.containers }}
{{- $own := .securityContext | default dict }}
{{- if not (hasKey $own "runAsUser") }}
{{- $_ := set . "env" (concat (list (dict "name" "HOME" "value" "/home/lockstep") (dict "name" "USER" "value" "lockstep")) (.env | default list)) }}
{{- $_ := set . "volumeMounts" (append (.volumeMounts | default list) (dict "name" "home" "mountPath" "/home/lockstep")) }}
{{- if and (eq .name "node") (not .workingDir) }}
{{- $_ := set . "workingDir" "/home/lockstep" }}
{{- end }}
{{- $_ := set $pod "volumes" (append ($pod.volumes | default list) (dict "name" "home" "emptyDir" dict)) }}
{{- end }}
{{- $_ := set . "securityContext" (mergeOverwrite (dict "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL"))) $own) }}
{{- end }}
{{- end }}

{{/* An image with another registry, repository or tag: a list of the image and these, of which each may be missing. */}}
{{- define "lockstep.runtime.image" -}}
{{- $image := index . 0 }}{{ $other := index . 1 -}}
{{- $name := regexReplaceAll ":[^/]*$" $image "" }}
{{- $tag := trimPrefix $name $image }}
{{- $registry := regexFind "^[^/]*\\.[^/]*/" $name }}
{{- $repository := trimPrefix $registry $name }}
{{- with $other.registry }}{{ $registry = printf "%s/" . }}{{ end }}
{{- with $other.repository }}{{ $repository = . }}{{ end }}
{{- with $other.tag }}{{ $tag = printf ":%s" . }}{{ end }}
{{- printf "%s%s%s" $registry $repository $tag }}
{{- end }}
