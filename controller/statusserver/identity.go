package statusserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// Believed is how long a token is believed before it has to be proven again; its own end is looked at each time. So long at
// most can a pod's token outlive the pod.
const Believed = time.Minute

// errDenied indicates somebody who is none of the job's pods. Its text is for the log.
var errDenied = errors.New("not a pod of this TrainJob")

// identities proves that a token is one of a job's pods'. The token alone says that the API server gave it to a pod for
// this audience, and anybody who may create pods can ask for that; so the pod must be one that the job has made.
type identities struct {
	// cached reads TrainJobs and JobSets; live asks the API server, for pods come and go faster than caches follow.
	cached client.Reader
	live   client.Client
	known  *cache.LRUExpireCache
}

func newIdentities(cached client.Reader, live client.Client, c clock.PassiveClock) *identities {
	return &identities{
		cached: cached, live: live,
		known: cache.NewLRUExpireCacheWithClock(remembered, c),
	}
}

// seen is a token, which is not kept itself, and what it was proven for.
type seen struct {
	token [sha256.Size]byte
	job   types.UID
}

// knows reports whether the token was proven for the job not long ago.
func (i *identities) knows(token string, job types.UID) bool {
	_, ok := i.known.Get(seen{sha256.Sum256([]byte(token)), job})
	return ok
}

// prove proves that the token is one of the job's pods'. The error is errDenied, or a fault.
func (i *identities) prove(ctx context.Context, token string, job *trainerv1alpha1.TrainJob) error {
	pod, err := i.review(ctx, token, client.ObjectKeyFromObject(job))
	if err != nil {
		return err
	}
	if err = i.belongs(ctx, pod, job); err != nil {
		return err
	}
	i.known.Add(seen{sha256.Sum256([]byte(token)), job.UID}, true, Believed)
	return nil
}

// review asks the API server whose token it is. Its signature, its end and that its pod still exists are looked at there.
func (i *identities) review(
	ctx context.Context, token string, job types.NamespacedName,
) (*corev1.Pod, error) {
	audience := plan.StatusAudience(job)
	review := &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}},
	}
	if err := i.live.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("reviewing a token for TrainJob %s: %w", job, err)
	}
	user := review.Status.User
	names, uids := user.Extra[serviceaccount.PodNameKey], user.Extra[serviceaccount.PodUIDKey]
	switch {
	case !review.Status.Authenticated:
		return nil, fmt.Errorf("%w: the API server does not accept the token: %s", errDenied, review.Status.Error)
	case !slices.Contains(review.Status.Audiences, audience):
		return nil, fmt.Errorf("%w: the token is meant for %v", errDenied, review.Status.Audiences)
	case !strings.HasPrefix(user.Username, serviceaccount.ServiceAccountUsernamePrefix+job.Namespace+":"):
		return nil, fmt.Errorf("%w: the token is one of %s", errDenied, user.Username)
	case len(names) != 1 || len(uids) != 1:
		return nil, fmt.Errorf("%w: the token is not bound to a pod", errDenied)
	}
	var pod corev1.Pod
	if err := i.live.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: names[0]}, &pod); err != nil {
		return nil, absent("pod", err)
	}
	if string(pod.UID) != uids[0] {
		return nil, fmt.Errorf("%w: the token is one of an earlier pod %s", errDenied, pod.Name)
	}
	return &pod, nil
}

// belongs follows the owners from the pod to the job. Names are not enough: a job can have had another one's name.
func (i *identities) belongs(ctx context.Context, pod *corev1.Pod, job *trainerv1alpha1.TrainJob) error {
	if pod.Labels[jobsetv1alpha2.JobSetNameKey] != job.Name {
		return fmt.Errorf("%w: pod %s is none of its JobSet's", errDenied, pod.Name)
	}
	var jobSet jobsetv1alpha2.JobSet
	if err := i.cached.Get(ctx, client.ObjectKeyFromObject(job), &jobSet); err != nil {
		return absent("JobSet", err)
	}
	jobKind, jobSetKind := batchv1.SchemeGroupVersion.WithKind("Job"), jobsetv1alpha2.GroupVersion.WithKind("JobSet")
	owner := ownership.ControllerOf(pod, jobKind)
	if owner == nil {
		return fmt.Errorf("%w: pod %s belongs to no Job", errDenied, pod.Name)
	}
	var child batchv1.Job
	if err := i.live.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: owner.Name}, &child); err != nil {
		return absent("Job", err)
	}
	if !ownership.Controls(&child, jobKind, pod) || !ownership.Controls(&jobSet, jobSetKind, &child) ||
		!ownership.Controls(job, plan.TrainJobKind(), &jobSet) {
		return fmt.Errorf("%w: pod %s belongs to another one", errDenied, pod.Name)
	}
	return nil
}

// absent is a denial if an object is not there, and otherwise a fault.
func absent(kind string, err error) error {
	if client.IgnoreNotFound(err) == nil {
		return fmt.Errorf("%w: there is no such %s: %w", errDenied, kind, err)
	}
	return fmt.Errorf("getting the %s of a token: %w", kind, err)
}
