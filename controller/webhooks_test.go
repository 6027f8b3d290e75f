package controller_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/manifests/render"
)

// TestWebhook_ConfigurationsMatchTrainer holds the contract of Kubeflow Trainer, with our names around it.
func TestWebhook_ConfigurationsMatchTrainer(t *testing.T) {
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	charted(t, render.Default(), "MutatingWebhookConfiguration", controller.MutatingConfiguration, &mutating)
	charted(t, render.Default(), "ValidatingWebhookConfiguration", controller.ValidatingConfiguration, &validating)
	if kueue := "kueue-mutating-webhook-configuration"; mutating.Name < kueue {
		t.Errorf("%s runs before %s", mutating.Name, kueue)
	}
	entries := slices.Clone(validating.Webhooks)
	for _, webhook := range mutating.Webhooks {
		entries = append(entries, admissionregistrationv1.ValidatingWebhook{
			Name: webhook.Name, ClientConfig: webhook.ClientConfig, Rules: webhook.Rules,
			FailurePolicy: webhook.FailurePolicy, MatchPolicy: webhook.MatchPolicy,
			ObjectSelector: webhook.ObjectSelector, SideEffects: webhook.SideEffects,
			TimeoutSeconds: webhook.TimeoutSeconds, AdmissionReviewVersions: webhook.AdmissionReviewVersions,
		})
	}
	got := map[string]string{}
	for _, webhook := range entries {
		if webhook.FailurePolicy == nil || *webhook.FailurePolicy != admissionregistrationv1.Fail ||
			*webhook.SideEffects != admissionregistrationv1.SideEffectClassNone ||
			*webhook.MatchPolicy != admissionregistrationv1.Equivalent || *webhook.TimeoutSeconds != 10 ||
			!slices.Equal(webhook.AdmissionReviewVersions, []string{"v1"}) || len(webhook.ClientConfig.CABundle) > 0 {
			t.Errorf("%s: %+v", webhook.Name, webhook)
		}
		service, exempt := webhook.ClientConfig.Service, ""
		if service.Name != config.Default().WebhookService || service.Namespace != config.Default().Namespace ||
			service.Port != nil {
			t.Errorf("%s calls %+v", webhook.Name, service)
		}
		if webhook.ObjectSelector != nil {
			exempt = fmt.Sprint(" ", webhook.ObjectSelector.MatchExpressions)
		}
		rule := webhook.Rules[0]
		got[webhook.Name] = fmt.Sprint(
			*service.Path,
			rule.APIGroups,
			rule.APIVersions,
			rule.Operations,
			rule.Resources,
			exempt,
		)
	}
	const exempt = " [{trainer.kubeflow.org/webhook-validation NotIn [disabled]}]"
	entry := func(verb, singular string) string {
		return "/" + verb + "-trainer-kubeflow-org-v1alpha1-" + singular +
			"[trainer.kubeflow.org] [v1alpha1] [CREATE UPDATE] [" + singular + "s]"
	}
	want := map[string]string{
		"defaulter.trainjob.trainer.kubeflow.org":               entry("mutate", "trainjob"),
		"validator.trainjob.trainer.kubeflow.org":               entry("validate", "trainjob"),
		"validator.trainingruntime.trainer.kubeflow.org":        entry("validate", "trainingruntime") + exempt,
		"validator.clustertrainingruntime.trainer.kubeflow.org": entry("validate", "clustertrainingruntime") + exempt,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}

// TestChart_ControllerPartsBelongTogether checks that Deployment, Service, options and account match.
func TestChart_ControllerPartsBelongTogether(t *testing.T) {
	var deployment appsv1.Deployment
	var service corev1.Service
	charted(t, render.Default(), "Deployment", "lockstep-controller", &deployment)
	charted(t, render.Default(), "Service", config.Default().WebhookService, &service)
	pod := deployment.Spec.Template
	options := deployedOptions(t, render.Default())
	if !options.LeaderElect || *deployment.Spec.Replicas != 2 || options.GangDefault != "on" ||
		!options.TrainJobStatus {
		t.Errorf("%d replicas; the options say %+v", *deployment.Spec.Replicas, options)
	}
	if service.Name != options.WebhookService || service.Namespace != options.Namespace ||
		deployment.Namespace != options.Namespace || pod.Spec.ServiceAccountName != "lockstep-controller" {
		t.Errorf("Service %s/%s, Deployment in %s, account %s; the options say %+v",
			service.Namespace, service.Name, deployment.Namespace, pod.Spec.ServiceAccountName, options)
	}
	for _, selector := range []map[string]string{service.Spec.Selector, deployment.Spec.Selector.MatchLabels} {
		if !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			t.Errorf("%v does not select the pods %v", selector, pod.Labels)
		}
	}
	ports := map[string]string{}
	for _, port := range pod.Spec.Containers[0].Ports {
		ports[port.Name] = fmt.Sprint(":", port.ContainerPort)
	}
	if ports["webhook"] != fmt.Sprint(":", options.WebhookPort) || ports["metrics"] != options.MetricsBindAddress ||
		ports["health"] != options.HealthProbeBindAddress {
		t.Errorf("ports %v; the options say %+v", ports, options)
	}
	if port := service.Spec.Ports[0]; port.Port != 443 || port.TargetPort.StrVal != "webhook" {
		t.Errorf("the Service leads from %d to %v", port.Port, port.TargetPort)
	}
	for _, port := range service.Spec.Ports[1:] {
		if port.TargetPort.StrVal != port.Name || ports[port.Name] != fmt.Sprint(":", port.Port) {
			t.Errorf("the Service leads from %s %d to %v", port.Name, port.Port, port.TargetPort)
		}
	}
	if ports["status-server"] != fmt.Sprint(":", options.StatusServerPort) || !options.MetricsSecure {
		t.Errorf("ports %v; the options say %+v", ports, options)
	}
	container := pod.Spec.Containers[0].SecurityContext
	if !*pod.Spec.SecurityContext.RunAsNonRoot || !*container.ReadOnlyRootFilesystem ||
		*container.AllowPrivilegeEscalation || !slices.Equal(container.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
		pod.Spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod's security: %+v, %+v", pod.Spec.SecurityContext, container)
	}
}
