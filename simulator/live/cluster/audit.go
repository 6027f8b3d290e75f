package cluster

import "fmt"

// auditPolicy logs the requests of Lockstep's components, and those in which the administrator may act as a user or as
// an account that has no program here. Metadata has the account and the request, never its content.
func (p plan) auditPolicy() string {
	return fmt.Sprintf(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [%q, %q]
- level: Metadata
  users: [%q]
  resources:
  - {group: trainer.kubeflow.org}
  - {group: scheduling.lockstep.dev}
  - {group: leaderworkerset.x-k8s.io}
  - {group: "", resources: [configmaps, services, serviceaccounts]}
- level: None
`, p.controllerPod.user, p.schedulerPod.user, adminUser)
}

// AuditLog is the file with the audit events of Lockstep's components, one JSON object a line. It exists if
// Options.Audit asked for it.
func (c *Cluster) AuditLog() string { return c.plan.auditLog() }

func (p plan) auditLog() string { return p.state.path("logs", "audit.log") }

// auditing is the API server's flags for its audit log. Without a size it would start a new file at 100 MB.
func (p plan) auditing() []string {
	if !p.audited {
		return nil
	}
	return []string{
		"--audit-policy-file=" + p.state.path("config", "audit.yaml"), "--audit-log-path=" + p.auditLog(),
		"--audit-log-maxsize=10000",
	}
}
