package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	fileVersion = "config.trainer.kubeflow.org/v1alpha1"
	fileKind    = "Configuration"
	// trainJobs is the file's name of TrainJobs among the kinds that have a concurrency.
	trainJobs = "TrainJob.trainer.kubeflow.org"
)

// file is Kubeflow Trainer's configuration file. Fields of type any are known and not used, which distinguishes them
// from fields that do not exist.
type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Webhook    struct {
		Port *int    `json:"port"`
		Host *string `json:"host"`
	} `json:"webhook"`
	LeaderElection struct {
		LeaderElect       *bool `json:"leaderElect"`
		LeaseDuration     any   `json:"leaseDuration"`
		RenewDeadline     any   `json:"renewDeadline"`
		RetryPeriod       any   `json:"retryPeriod"`
		ResourceLock      any   `json:"resourceLock"`
		ResourceName      any   `json:"resourceName"`
		ResourceNamespace any   `json:"resourceNamespace"`
	} `json:"leaderElection"`
	Metrics struct {
		BindAddress   *string `json:"bindAddress"`
		SecureServing *bool   `json:"secureServing"`
	} `json:"metrics"`
	Health struct {
		HealthProbeBindAddress *string `json:"healthProbeBindAddress"`
		ReadinessEndpointName  any     `json:"readinessEndpointName"`
		LivenessEndpointName   any     `json:"livenessEndpointName"`
	} `json:"health"`
	Controller struct {
		GroupKindConcurrency map[string]int `json:"groupKindConcurrency"`
	} `json:"controller"`
	CertManagement struct {
		Enable             *bool   `json:"enable"`
		WebhookServiceName *string `json:"webhookServiceName"`
		WebhookSecretName  *string `json:"webhookSecretName"`
	} `json:"certManagement"`
	ClientConnection struct {
		QPS   *float32 `json:"qps"`
		Burst *int     `json:"burst"`
	} `json:"clientConnection"`
	StatusServer struct {
		Port  *int     `json:"port"`
		QPS   *float32 `json:"qps"`
		Burst *int     `json:"burst"`
	} `json:"statusServer"`
	TLS struct {
		MinVersion   any `json:"minVersion"`
		CipherSuites any `json:"cipherSuites"`
		NextProtos   any `json:"nextProtos"`
	} `json:"tls"`
	FeatureGates map[string]*bool `json:"featureGates"`
}

// usedFields are the paths of the fields that this controller uses.
func usedFields() []string {
	return []string{
		"apiVersion",
		"kind",
		"webhook.port",
		"webhook.host",
		"leaderElection.leaderElect",
		"metrics.bindAddress",
		"metrics.secureServing",
		"health.healthProbeBindAddress",
		"controller.groupKindConcurrency." + trainJobs,
		"certManagement.enable",
		"certManagement.webhookServiceName",
		"certManagement.webhookSecretName",
		"clientConnection.qps",
		"clientConnection.burst",
		"statusServer.port",
		"statusServer.qps",
		"statusServer.burst",
		"featureGates." + trainJobStatus,
	}
}

// readFile applies the file to the options, and lists its fields that have no effect. Errors are one line that names
// the file and the field.
func (o *Options) readFile(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	parsed, fields, err := decode(content)
	if err == nil {
		err = parsed.validate()
	}
	if err == nil {
		err = parsed.applyGates(o)
	}
	if err != nil {
		return fmt.Errorf("--config=%s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	parsed.apply(o)
	o.Unused = slices.DeleteFunc(fields, func(field string) bool { return slices.Contains(usedFields(), field) })
	return nil
}

// decode also returns the paths of all fields that are set, in order.
func decode(content []byte) (file, []string, error) {
	var parsed file
	document, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return parsed, nil, fmt.Errorf("is not YAML: %w", err)
	}
	var fields any
	if err = json.Unmarshal(document, &fields); err != nil {
		return parsed, nil, fmt.Errorf("is not YAML: %w", err)
	}
	unknown, err := strictjson.UnmarshalStrict(document, &parsed)
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	if err != nil {
		return parsed, nil, fmt.Errorf("does not fit %s, kind %s: %w", fileVersion, fileKind, err)
	}
	if parsed.APIVersion != fileVersion || parsed.Kind != fileKind {
		return parsed, nil, fmt.Errorf("apiVersion is %q and kind is %q: must be %s and %s",
			parsed.APIVersion, parsed.Kind, fileVersion, fileKind)
	}
	return parsed, leaves("", fields), nil
}

// leaves are the paths of the values below a value, in order.
func leaves(path string, value any) []string {
	fields, ok := value.(map[string]any)
	if !ok {
		return []string{strings.TrimPrefix(path, ".")}
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		found = append(found, leaves(path+"."+name, fields[name])...)
	}
	return found
}

// validate refuses the values that Kubeflow Trainer refuses in the fields that are used.
func (f *file) validate() error {
	for _, kind := range slices.Sorted(maps.Keys(f.Controller.GroupKindConcurrency)) {
		if n := f.Controller.GroupKindConcurrency[kind]; n < 1 {
			return fmt.Errorf("controller.groupKindConcurrency[%s] is %d: must be greater than 0", kind, n)
		}
	}
	if err := errors.Join(
		validatePort("webhook", f.Webhook.Port),
		validatePort("statusServer", f.StatusServer.Port),
	); err != nil {
		return err
	}
	if err := validateRate("clientConnection", f.ClientConnection.QPS, f.ClientConnection.Burst); err != nil {
		return err
	}
	if err := validateRate("statusServer", f.StatusServer.QPS, f.StatusServer.Burst); err != nil {
		return err
	}
	if name := f.CertManagement.WebhookServiceName; name != nil && *name == "" {
		return errors.New("certManagement.webhookServiceName must not be empty")
	}
	if name := f.CertManagement.WebhookSecretName; name != nil && *name == "" {
		return errors.New("certManagement.webhookSecretName must not be empty")
	}
	return nil
}

func validatePort(section string, port *int) error {
	if port != nil && (*port < 1 || *port > maxPort) {
		return fmt.Errorf("%s.port is %d: must be between 1 and %d", section, *port, maxPort)
	}
	return nil
}

func validateRate(section string, qps *float32, burst *int) error {
	if qps != nil && *qps < 0 {
		return fmt.Errorf("%s.qps is %v: must be greater than or equal to 0", section, *qps)
	}
	if burst != nil && *burst < 0 {
		return fmt.Errorf("%s.burst is %d: must be greater than or equal to 0", section, *burst)
	}
	return nil
}

// applyGates switches the feature gates that the file names.
func (f *file) applyGates(o *Options) error {
	for _, name := range slices.Sorted(maps.Keys(f.FeatureGates)) {
		if err := o.setGate(name, f.FeatureGates[name]); err != nil {
			return fmt.Errorf("featureGates: %w", err)
		}
	}
	return nil
}

func (f *file) apply(o *Options) {
	set(&o.WebhookPort, f.Webhook.Port)
	set(&o.WebhookHost, f.Webhook.Host)
	set(&o.LeaderElect, f.LeaderElection.LeaderElect)
	set(&o.MetricsBindAddress, f.Metrics.BindAddress)
	set(&o.MetricsSecure, f.Metrics.SecureServing)
	set(&o.HealthProbeBindAddress, f.Health.HealthProbeBindAddress)
	set(&o.WebhookService, f.CertManagement.WebhookServiceName)
	set(&o.WebhookSecret, f.CertManagement.WebhookSecretName)
	set(&o.QueriesPerSecond, f.ClientConnection.QPS)
	set(&o.Burst, f.ClientConnection.Burst)
	set(&o.StatusServerPort, f.StatusServer.Port)
	set(&o.StatusServerQueriesPerSecond, f.StatusServer.QPS)
	set(&o.StatusServerBurst, f.StatusServer.Burst)
	if workers, ok := f.Controller.GroupKindConcurrency[trainJobs]; ok {
		o.Workers = workers
	}
	if enable := f.CertManagement.Enable; enable != nil {
		o.CertManagement = External
		if *enable {
			o.CertManagement = Self
		}
	}
}

// set replaces a value by the file's, if it has one.
func set[T any](value, from *T) {
	if from != nil {
		*value = *from
	}
}
