package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// defaultAccount gives pods that name no account their namespace's default one, as the ServiceAccount admission plugin does:
// without an account a pod may not have the volume with which trainers report. The plugin itself would also refuse accounts
// that do not exist, which jobs from elsewhere name, and pods in a namespace that is younger than its account.
const defaultAccount = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: lockstep-up-default-account}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  matchConditions:
  - name: names-no-account
    expression: "!has(object.spec.serviceAccountName) || object.spec.serviceAccountName == ''"
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: '[JSONPatch{op: "add", path: "/spec/serviceAccountName", value: "default"}]'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: lockstep-up-default-account}
spec: {policyName: lockstep-up-default-account}
`

// accounts returns how the API server gives pods their accounts: by defaultAccount, or, in releases before 1.36, which do not serve
// such policies, by the admission plugin.
func (p plan) accounts() []string {
	if p.real == nil && p.servesMutatingPolicies() {
		return []string{"--disable-admission-plugins=ServiceAccount"}
	}
	return nil
}

func (p plan) servesMutatingPolicies() bool {
	return p.binaries.kubernetes.version >= "v1.36" // all of one length as far as it matters
}

// waitForAccounts waits until pods are given their account. The API server takes a moment to follow a policy.
func (c *Cluster) waitForAccounts(ctx context.Context) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "tried"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "tried", Image: "none"}}},
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			var tried *corev1.Pod
			tried, last = c.Client.CoreV1().Pods(pod.Namespace).
				Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return last == nil && tried.Spec.ServiceAccountName != "", nil
		})
	if err != nil {
		return fmt.Errorf("waiting for pods to be given an account: %w", errors.Join(err, last))
	}
	return nil
}
