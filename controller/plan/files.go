package plan

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
)

// files are the ConfigMaps of the framework and the Secrets that it wants.
func (d *draft) files() (configs []*corev1.ConfigMap, secrets []Secret) {
	contribution := d.framework.Contribute(d.input)
	for _, files := range contribution.Files {
		configs = append(configs, &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{
				Name: d.job.Name + "-" + files.Suffix, Namespace: d.job.Namespace, OwnerReferences: Owners(d.job),
			},
			Data: files.Data,
		})
	}
	for _, secret := range contribution.Secrets {
		secrets = append(secrets, Secret{Name: d.input.SecretName(secret.Suffix), Kind: secret.Kind})
	}
	return append(configs, d.statusConfigs()...), secrets
}

// ConfigNames returns the names of all ConfigMaps that a job may have, for any framework, in a fixed order.
func ConfigNames(job *trainerv1alpha1.TrainJob) []string {
	var names []string
	files, _ := framework.Suffixes()
	for _, suffix := range files {
		names = append(names, job.Name+"-"+suffix)
	}
	return append(names, StatusConfigName(job.Name))
}

// SecretNames returns the names of all Secrets that a job may have, for any framework, in a fixed order. They end with
// secretSuffix.
func SecretNames(job *trainerv1alpha1.TrainJob, secretSuffix string) []string {
	var names []string
	_, keys := framework.Suffixes()
	for _, suffix := range keys {
		names = append(names, framework.SecretName(job.Name, suffix, secretSuffix))
	}
	return names
}
