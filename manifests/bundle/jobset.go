package bundle

import (
	"bytes"
	"fmt"

	helmchart "helm.sh/helm/v4/pkg/chart/v2"
)

// change is a change of a file in JobSet's chart: a text that is there once is replaced.
type change struct {
	file, text, by string
}

// changes returns the edits of JobSet's chart.
//
// JobSet writes its certificate into a Secret that its chart makes, with empty content. Helm 4 applies on the server,
// finds that JobSet owns these fields since its start, and refuses every upgrade and rollback. So the packed chart
// makes the Secret without content.
//
// Then no file of a certificate is mounted when JobSet starts. The kubelet mounts it with its next sync of the pod, up
// to a minute later, and JobSet looks for it at growing intervals: 88 s were seen until it was ready. A container that
// starts again finds the certificate mounted, so a startup probe ends one that is not ready after 20 s. With the empty
// files JobSet ends by itself, and starts again.
func changes() []change {
	return []change{
		{
			"templates/internalcert/secret.yaml",
			"data:\n  ca.crt: \"\"\n  ca.key: \"\"\n  tls.crt: \"\"\n  tls.key: \"\"\n",
			"",
		},
		{
			"templates/controller/deployment.yaml",
			"        readinessProbe:\n",
			"        startupProbe:\n          httpGet:\n            port: 8081\n            scheme: HTTP\n            path: /readyz\n" +
				"          periodSeconds: 2\n          failureThreshold: 10\n        readinessProbe:\n",
		},
	}
}

// adapt changes JobSet's chart.
func adapt(jobset *helmchart.Chart) error {
	for _, change := range changes() {
		if err := change.apply(jobset); err != nil {
			return err
		}
	}
	return nil
}

func (c change) apply(jobset *helmchart.Chart) error {
	for _, file := range jobset.Templates {
		if file.Name != c.file {
			continue
		}
		if bytes.Count(file.Data, []byte(c.text)) != 1 {
			return fmt.Errorf("%s is not as it was in JobSet 0.12: %w", c.file, ErrDependency)
		}
		file.Data = bytes.Replace(file.Data, []byte(c.text), []byte(c.by), 1)
		return nil
	}
	return fmt.Errorf("there is no %s: %w", c.file, ErrDependency)
}
