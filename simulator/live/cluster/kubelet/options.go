package kubelet

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// optionsOf parses the API server's query for a log; client-go has no conversion for it.
func optionsOf(query url.Values) (corev1.PodLogOptions, error) {
	var options corev1.PodLogOptions
	for name, into := range map[string]*bool{
		"follow": &options.Follow, "previous": &options.Previous, "timestamps": &options.Timestamps,
	} {
		if !query.Has(name) {
			continue
		}
		value, err := strconv.ParseBool(query.Get(name))
		if err != nil {
			return options, fmt.Errorf("%s=%s: %w", name, query.Get(name), err)
		}
		*into = value
	}
	for name, into := range map[string]**int64{
		"sinceSeconds": &options.SinceSeconds, "tailLines": &options.TailLines, "limitBytes": &options.LimitBytes,
	} {
		if !query.Has(name) {
			continue
		}
		value, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil {
			return options, fmt.Errorf("%s=%s: %w", name, query.Get(name), err)
		}
		*into = &value
	}
	if query.Has("sinceTime") {
		at, err := time.Parse(time.RFC3339, query.Get("sinceTime"))
		if err != nil {
			return options, fmt.Errorf("sinceTime=%s: %w", query.Get("sinceTime"), err)
		}
		options.SinceTime = new(metav1.NewTime(at))
	}
	return options, nil
}
