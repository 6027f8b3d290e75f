package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// The variables and files of a trainer's containers when there is a status server. Names, places and lifetimes are
// Kubeflow Trainer's (KEP-2779): its SDK looks for them.
const (
	// EnvStatusURL is the address for POST, envStatusAuthority and envStatusToken name files: the trusted authority,
	// and the pod's token.
	EnvStatusURL       = "KUBEFLOW_TRAINER_SERVER_URL"
	envStatusAuthority = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
	envStatusToken     = "KUBEFLOW_TRAINER_SERVER_TOKEN"
	// StatusAuthorityKey is the key of the trusted authority in the ConfigMap, and the file's name.
	StatusAuthorityKey = "ca.crt"

	statusVolume       = "kubeflow-trainer-token"
	statusFolder       = "/var/run/secrets/kubeflow/trainer"
	statusToken        = "token"
	statusTokenSeconds = 3600
)

// AnnotationDigest on a ConfigMap that may change while its job runs is the digest of its content: the controller
// caches only the metadata of ConfigMaps.
const AnnotationDigest = "lockstep.dev/content-digest"

// StatusServer is the server to which trainers report their progress.
type StatusServer struct {
	// URL is its address without a path, such as https://service.namespace.svc:10443.
	URL string `json:"url"`
	// Authority checks its certificate, as PEM; empty leaves the ConfigMap with it out.
	Authority string `json:"authority,omitempty"`
}

// StatusAudience is the audience of the tokens with which a job's pods report: valid for this job only.
func StatusAudience(job types.NamespacedName) string {
	return trainerv1alpha1.GroupVersion().
		String() +
		"/namespaces/" + job.Namespace + "/trainjobs/" + job.Name + "/status"
}

// StatusPath is the path under which a job's pods report.
func StatusPath(job types.NamespacedName) string { return "/apis/" + StatusAudience(job) }

// StatusConfigName returns the name of the ConfigMap with the authority that a job's pods trust.
func StatusConfigName(job string) string { return job + "-tls-config" }

// reportsTo is the status server to which the pods of a JobSet report; nil if they know none.
func reportsTo(jobSet *jobsetv1alpha2.JobSet) *statev1alpha1.StatusServerReference {
	path := StatusPath(types.NamespacedName{Namespace: jobSet.Namespace, Name: jobSet.Name})
	var found *statev1alpha1.StatusServerReference
	for _, replicated := range jobSet.Spec.ReplicatedJobs {
		pod := replicated.Template.Spec.Template.Spec
		ours := func(volume corev1.Volume) bool { return volume.Name == statusVolume }
		if ancestor(replicated) != trainerv1alpha1.AncestorTrainer || !slices.ContainsFunc(pod.Volumes, ours) {
			continue
		}
		found = &statev1alpha1.StatusServerReference{} // the user replaced its address, unless it is found below
		for _, container := range pod.Containers {
			for _, variable := range container.Env {
				if base, ok := strings.CutSuffix(variable.Value, path); ok && variable.Name == EnvStatusURL {
					return &statev1alpha1.StatusServerReference{URL: base}
				}
			}
		}
	}
	return found
}

func (d *draft) key() types.NamespacedName {
	return types.NamespacedName{Namespace: d.job.Namespace, Name: d.job.Name}
}

// statusEnv are the variables of every container that trains.
func (d *draft) statusEnv() []corev1.EnvVar {
	if d.status == nil {
		return nil
	}
	return []corev1.EnvVar{
		{Name: EnvStatusURL, Value: d.status.URL + StatusPath(d.key())},
		{Name: envStatusAuthority, Value: statusFolder + "/" + StatusAuthorityKey},
		{Name: envStatusToken, Value: statusFolder + "/" + statusToken},
	}
}

// joinStatus lets all containers of a trainer's pods report: the main one has its variables already, among those that
// its user's win over.
func (d *draft) joinStatus(replicated *jobsetv1alpha2.ReplicatedJob) {
	if d.status == nil {
		return
	}
	pod := &replicated.Template.Spec.Template.Spec
	main := mainContainer(replicated, trainerv1alpha1.NodeName)
	for i := range pod.Containers {
		container := &pod.Containers[i]
		if container != main {
			container.Env = upsertEnv(container.Env, d.statusEnv())
		}
		container.VolumeMounts = upsert(
			container.VolumeMounts,
			corev1.VolumeMount{Name: statusVolume, MountPath: statusFolder, ReadOnly: true},
			func(o corev1.VolumeMount) bool { return o.MountPath == statusFolder },
		)
	}
	pod.Volumes = upsert(pod.Volumes, d.statusVolume(), func(o corev1.Volume) bool { return o.Name == statusVolume })
}

// statusVolume returns the volume with a token that is valid for this job's status only, and the trusted authority.
func (d *draft) statusVolume() corev1.Volume {
	return corev1.Volume{Name: statusVolume, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: StatusAudience(d.key()), ExpirationSeconds: new(int64(statusTokenSeconds)), Path: statusToken,
			}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: StatusConfigName(d.job.Name)},
				Items:                []corev1.KeyToPath{{Key: StatusAuthorityKey, Path: StatusAuthorityKey}},
			}},
		}},
	}}
}

// statusConfigs returns the ConfigMap with the trusted authority, if that is known.
func (d *draft) statusConfigs() []*corev1.ConfigMap {
	if d.status == nil || d.status.Authority == "" {
		return nil
	}
	digest := sha256.Sum256([]byte(d.status.Authority))
	return []*corev1.ConfigMap{{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: StatusConfigName(d.job.Name), Namespace: d.job.Namespace, OwnerReferences: Owners(d.job),
			Annotations: map[string]string{AnnotationDigest: hex.EncodeToString(digest[:])},
		},
		Data: map[string]string{StatusAuthorityKey: d.status.Authority},
	}}
}
