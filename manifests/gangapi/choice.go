package gangapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

const (
	// Memory is the ConfigMap, in Lockstep's namespace, that stores the choice.
	Memory = "lockstep-gang-api"
	// memoryKey is the key under which the ConfigMap has the API.
	memoryKey = "api"
)

// ErrNoAPI indicates that the cluster does not serve the API of the gangs. The text names the remedy.
var ErrNoAPI = errors.New("this cluster cannot keep gangs")

// Served holds the APIs that an API server serves; the native one at either version.
type Served struct{ Native, NativeV1, Resources bool }

// native returns the native API at the version that is served; "" if none is. Where both are, it is the version of the
// Go types.
func (s Served) native() API {
	switch {
	case s.Native:
		return Native
	case s.NativeV1:
		return NativeV1
	default:
		return ""
	}
}

// Choose selects the API in which gangs are stored: the one that a flag names, else the one remembered from an earlier
// start, else the native API where it is served. An API server that serves more after an upgrade does not change a
// remembered choice: running gangs are in the earlier API.
func Choose(wanted, remembered API, served Served) (API, error) {
	switch {
	case wanted == "" && remembered == "" && served.native() != "":
		return served.native(), nil
	case wanted == "" && remembered == "" && served.Resources:
		return Resources, nil
	case wanted == "" && remembered == "":
		return "", fmt.Errorf(
			"%w: the API server serves neither the PodGroups of %s nor those of %s; apply manifests/chart/crds",
			ErrNoAPI,
			Native.Version(),
			Resources.Version(),
		)
	}
	api, hint := wanted, ""
	if api == "" {
		api = remembered
		hint = fmt.Sprintf(", or change the choice that ConfigMap %s keeps with --gang-api", Memory)
	}
	switch {
	case api == Native && served.native() == "":
		return "", fmt.Errorf("%w: the API server does not serve the PodGroups of %s; start kube-apiserver with "+
			"--feature-gates=GenericWorkload=true and --runtime-config=%s=true%s", ErrNoAPI, api.Version(), api.Version(), hint)
	case api == Resources && !served.Resources:
		return "", fmt.Errorf("%w: the API server does not serve the PodGroups of %s; apply manifests/chart/crds%s",
			ErrNoAPI, api.Version(), hint)
	case api == Native:
		return served.native(), nil
	}
	return api, nil
}

// Former returns the API, of those that are served, in which gangs were before they were moved; "" if it is not served.
func (s Served) Former(now API) API {
	switch {
	case now != Resources && s.Resources:
		return Resources
	case now == Resources:
		return s.native()
	default:
		return ""
	}
}

// Remembered returns the API that was chosen at an earlier start; "" if none was: an installation creates the ConfigMap
// empty.
func Remembered(ctx context.Context, client kubernetes.Interface, namespace string) (API, error) {
	found, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, Memory, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && found.Data[memoryKey] == "" {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading which API keeps gangs: %w", err)
	}
	return keptIn(found)
}

// keptIn returns the API that the ConfigMap has.
func keptIn(memory *corev1.ConfigMap) (API, error) {
	switch api := API(memory.Data[memoryKey]); api {
	case Native, Resources:
		return api, nil
	default:
		return "", fmt.Errorf("ConfigMap %s/%s: %s: there is no API %q; write %s or %s",
			memory.Namespace, Memory, memoryKey, api, Native, Resources)
	}
}

// Remember stores a choice, and returns the effective one: a wanted API, which is empty where no flag names one,
// replaces an earlier choice; of two processes that start for the first time side by side, the first one's choice is
// effective.
func Remember(
	ctx context.Context, client kubernetes.Interface, namespace string, chosen, wanted API,
) (API, error) {
	maps := client.CoreV1().ConfigMaps(namespace)
	for {
		found, err := maps.Get(ctx, Memory, metav1.GetOptions{})
		absent := apierrors.IsNotFound(err)
		switch {
		case err != nil && !absent:
			return "", fmt.Errorf("reading which API keeps gangs: %w", err)
		case absent:
			found = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: Memory, Namespace: namespace}}
		case API(found.Data[memoryKey]) == chosen.kept():
			return chosen, nil
		case found.Data[memoryKey] != "" && wanted == "":
			return keptIn(found)
		}
		found.Data = map[string]string{memoryKey: string(chosen.kept())}
		if absent {
			_, err = maps.Create(ctx, found, metav1.CreateOptions{})
		} else {
			_, err = maps.Update(ctx, found, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			return chosen, nil
		case !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err):
			return "", fmt.Errorf("keeping which API keeps gangs: %w", err)
		}
	}
}

// followEvery is the interval between the looks of Follow.
const followEvery = 15 * time.Second

// Follow returns an error as soon as the choice is no longer api, because a flag of another Lockstep process changed
// it. It returns nil when ctx ends.
func Follow(ctx context.Context, client kubernetes.Interface, namespace string, api API, c clock.WithTicker) error {
	ticker := c.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		now, err := Remembered(ctx, client, namespace)
		if err != nil || now == "" {
			continue // it was chosen when this process started; a read that fails changes nothing
		}
		if now != api.kept() {
			return fmt.Errorf("gangs are kept in %s now, and were in %s", now.Version(), api.Version())
		}
	}
}
