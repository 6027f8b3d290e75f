package bundle

import (
	"bytes"
	"fmt"

	helmchart "helm.sh/helm/v4/pkg/chart/v2"
)

// JobSet writes its certificate into a Secret that its chart makes, with empty content. Helm 4 applies on the server, finds that JobSet owns these
// fields since its start, and refuses every upgrade and rollback. So the packed chart makes the Secret without content.
const (
	secret   = "templates/internalcert/secret.yaml"
	contents = `data:
  ca.crt: ""
  ca.key: ""
  tls.crt: ""
  tls.key: ""
`
)

// leaveCertificate takes the content of that Secret out of JobSet's chart.
func leaveCertificate(jobset *helmchart.Chart) error {
	for _, file := range jobset.Templates {
		if file.Name != secret {
			continue
		}
		if bytes.Count(file.Data, []byte(contents)) != 1 {
			return fmt.Errorf("%s is not as it was in JobSet 0.12: %w", secret, ErrDependency)
		}
		file.Data = bytes.Replace(file.Data, []byte(contents), nil, 1)
		return nil
	}
	return fmt.Errorf("there is no %s: %w", secret, ErrDependency)
}
