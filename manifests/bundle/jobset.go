package bundle

import (
	"bytes"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
)

// JobSet writes its certificate into a Secret that its chart makes with empty content. Helm 4 applies as the API server's owner of fields, finds
// that another owns these now, and refuses every upgrade and rollback. So the Secret is made without content here. Then JobSet would
// wait until its kubelet has brought the files, which takes a minute and more; that they are empty makes it start again at once and
// read them anew, so the empty ones come from a ConfigMap, and those of the Secret win over them.
const (
	secret   = "templates/internalcert/secret.yaml"
	contents = `data:
  ca.crt: ""
  ca.key: ""
  tls.crt: ""
  tls.key: ""
`
	deployment = "templates/controller/deployment.yaml"
	volume     = `        secret:
          secretName: {{ include "jobset.webhook.secret.name" . }}
          defaultMode: 420
`
	projected = `        projected:
          defaultMode: 420
          sources:
          {{- if not .Values.certManager.enable }}
          - configMap: {name: {{ include "jobset.webhook.secret.name" . }}-empty}
          {{- end }}
          - secret: {name: {{ include "jobset.webhook.secret.name" . }}}
`
	files = "templates/internalcert/empty.yaml"
	empty = `{{- if not .Values.certManager.enable }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "jobset.webhook.secret.name" . }}-empty
  namespace: {{ .Release.Namespace }}
  labels:
    {{- include "jobset.webhook.labels" . | nindent 4 }}
` + contents + `{{- end }}
`
)

// leaveCertificate changes JobSet's chart so that upgrades leave its certificate to JobSet.
func leaveCertificate(jobset *helmchart.Chart) error {
	for _, change := range []struct{ template, old, new string }{
		{secret, contents, ""},
		{deployment, volume, projected},
	} {
		if err := replace(jobset, change.template, change.old, change.new); err != nil {
			return err
		}
	}
	jobset.Templates = append(jobset.Templates, &common.File{Name: files, Data: []byte(empty)})
	return nil
}

// replace replaces a text that a template has once.
func replace(in *helmchart.Chart, template, old, text string) error {
	for _, file := range in.Templates {
		if file.Name != template {
			continue
		}
		if bytes.Count(file.Data, []byte(old)) != 1 {
			return fmt.Errorf("%s is not as it was in JobSet 0.12: %w", template, ErrDependency)
		}
		file.Data = bytes.Replace(file.Data, []byte(old), []byte(text), 1)
		return nil
	}
	return fmt.Errorf("there is no %s: %w", template, ErrDependency)
}
