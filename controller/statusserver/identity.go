package statusserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
)

const (
	// Believed is the time for which a proof is believed before it is renewed.
	Believed = time.Minute
	// Lapses is the longest time for which a proof is believed, where renewing it fails or has to wait. A token's own
	// expiry is checked each time.
	Lapses = 10 * time.Minute
	// headroom is the ratio of possible renewals to needed ones.
	headroom = 1.25
)

// errDenied indicates a caller that is none of the job's pods. Its text is for the log.
var errDenied = errors.New("not a pod of this TrainJob")

// identities proves that a token is one of a job's pods'. The token alone proves that the API server gave it to a pod
// for this audience, and any user who may create pods can ask for that; so the pod must be one that the job has made.
//
// A proof costs three calls and is believed for a minute. From then on it is renewed beside the requests, by one
// TokenReview: that the pod is the job's cannot change, only that it exists. Renewals are limited, so that with many
// jobs each is renewed less often.
type identities struct {
	// cached reads TrainJobs and JobSets; live asks the API server, because pods change faster than caches follow.
	cached client.Reader
	live   client.Client
	clock  clock.PassiveClock
	known  *lru.Cache
	// perSecond and renewals limit renewals; jobs is the number of jobs that report.
	perSecond float32
	renewals  flowcontrol.PassiveRateLimiter
	jobs      func() int
	proofs    *prometheus.CounterVec
	// proving and renewing bound the number of proofs under way.
	proving, renewing seats
	// running are the renewals in progress.
	running sync.WaitGroup
}

func newIdentities(options Options, jobs func() int, proofs *prometheus.CounterVec) *identities {
	perSecond := options.QueriesPerSecond / renewalShare
	return &identities{
		cached:    options.Cached,
		live:      options.Proofs,
		clock:     options.Clock,
		known:     lru.New(remembered),
		proofs:    proofs,
		jobs:      jobs,
		proving:   make(seats, proving),
		renewing:  make(seats, renewing),
		perSecond: perSecond,
		renewals: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(
			perSecond, max(1, options.Burst/renewalShare), options.Clock),
	}
}

// seen is a token, by its hash only, and the job that it was proven for.
type seen struct {
	token [sha256.Size]byte
	job   types.UID
}

// member is a pod of a job.
type member struct {
	uid     types.UID
	created time.Time
}

// proof is the proven identity of a token.
type proof struct {
	member

	// at is the time of the proof, and jobSet the version of the JobSet by then.
	at       time.Time
	jobSet   string
	renewing *atomic.Bool
}

// knows returns the pod whose token was proven for the job and has not lapsed. A proof that is older than the interval,
// or than the JobSet's last change, after which its pods may be others, is renewed in the background.
func (i *identities) knows(ctx context.Context, token string, job *trainerv1alpha1.TrainJob) (member, bool) {
	key := seen{sha256.Sum256([]byte(token)), job.UID}
	found, _ := i.known.Get(key)
	known, ok := found.(proof)
	age := i.clock.Since(known.at)
	if !ok || age >= Lapses {
		return member{}, false
	}
	jobSet := i.jobSetVersion(ctx, job)
	if jobSet != known.jobSet || age >= i.interval() {
		i.renew(ctx, token, key, client.ObjectKeyFromObject(job), known, jobSet)
	}
	return known.member, true
}

// interval is the age from which a proof is renewed: so old that renewals suffice for all jobs.
func (i *identities) interval() time.Duration {
	round := headroom * float64(i.jobs()) / float64(i.perSecond)
	return max(Believed, time.Duration(round*float64(time.Second)))
}

// jobSetVersion is the version of the job's JobSet; empty if there is none. It is read for each report, so the cache
// does not copy the JobSet, which shares its parts with the cache and must not be changed.
func (i *identities) jobSetVersion(ctx context.Context, job *trainerv1alpha1.TrainJob) string {
	var jobSet jobsetv1alpha2.JobSet
	shared := &client.GetOptions{UnsafeDisableDeepCopy: new(true)}
	if err := i.cached.Get(ctx, client.ObjectKeyFromObject(job), &jobSet, shared); err != nil {
		return ""
	}
	return jobSet.ResourceVersion
}

// renew proves a known token again, in parallel to its request, if there is a renewal left. A deleted pod is unknown
// afterwards; an API server that does not answer changes nothing until the proof lapses.
func (i *identities) renew(
	ctx context.Context, token string, key seen, job types.NamespacedName, known proof, jobSet string,
) {
	if !known.renewing.CompareAndSwap(false, true) {
		return
	}
	if !i.renewing.take() {
		known.renewing.Store(false)
		return
	}
	if !i.renewals.TryAccept() {
		i.renewing.leave()
		known.renewing.Store(false)
		return
	}
	i.running.Go(func() {
		defer known.renewing.Store(false)
		defer i.renewing.leave()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		at := i.clock.Now()
		i.proofs.WithLabelValues("renewed").Inc()
		_, uid, err := i.review(ctx, token, job)
		log := klog.FromContext(ctx)
		switch {
		case errors.Is(err, errDenied) || err == nil && uid != known.uid:
			log.V(2).Info("Forgot a token", "trainJob", job, "reason", err)
			i.known.Remove(key)
		case err != nil:
			log.Error(err, "Renewing a proof of identity")
		default:
			i.known.Add(key, proof{member: known.member, at: at, jobSet: jobSet, renewing: known.renewing})
		}
	})
}

// prove proves that the token is one of the job's pods'. The error is errDenied, or a fault.
func (i *identities) prove(ctx context.Context, token string, job *trainerv1alpha1.TrainJob) (member, error) {
	at, jobSet := i.clock.Now(), i.jobSetVersion(ctx, job)
	i.proofs.WithLabelValues("first").Inc()
	pod, err := i.podOf(ctx, token, client.ObjectKeyFromObject(job))
	if err != nil {
		return member{}, err
	}
	if err = i.belongs(ctx, pod, job); err != nil {
		return member{}, err
	}
	proven := member{uid: pod.UID, created: pod.CreationTimestamp.Time}
	i.known.Add(seen{sha256.Sum256([]byte(token)), job.UID},
		proof{member: proven, at: at, jobSet: jobSet, renewing: &atomic.Bool{}})
	return proven, nil
}

// review asks the API server which pod's token it is. The review checks its signature, its expiry and the existence of
// its pod.
func (i *identities) review(
	ctx context.Context, token string, job types.NamespacedName,
) (pod string, uid types.UID, err error) {
	audience := plan.StatusAudience(job)
	review := &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}},
	}
	if err := i.live.Create(ctx, review); err != nil {
		return "", "", fmt.Errorf("reviewing a token for TrainJob %s: %w", job, err)
	}
	user := review.Status.User
	names, uids := user.Extra[serviceaccount.PodNameKey], user.Extra[serviceaccount.PodUIDKey]
	switch {
	case !review.Status.Authenticated:
		return "", "", fmt.Errorf("%w: the API server does not accept the token: %s", errDenied, review.Status.Error)
	case !slices.Contains(review.Status.Audiences, audience):
		return "", "", fmt.Errorf("%w: the token is meant for %v", errDenied, review.Status.Audiences)
	case !strings.HasPrefix(user.Username, serviceaccount.ServiceAccountUsernamePrefix+job.Namespace+":"):
		return "", "", fmt.Errorf("%w: the token is one of %s", errDenied, user.Username)
	case len(names) != 1 || len(uids) != 1:
		return "", "", fmt.Errorf("%w: the token is not bound to a pod", errDenied)
	}
	return names[0], types.UID(uids[0]), nil
}

// podOf returns the pod that owns the token.
func (i *identities) podOf(ctx context.Context, token string, job types.NamespacedName) (*corev1.Pod, error) {
	name, uid, err := i.review(ctx, token, job)
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	if err := i.live.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: name}, &pod); err != nil {
		return nil, absent("pod", err)
	}
	if pod.UID != uid {
		return nil, fmt.Errorf("%w: the token is one of an earlier pod %s", errDenied, pod.Name)
	}
	return &pod, nil
}

// belongs follows the owners from the pod to the job. Names are not enough: a job can have had another one's name. The
// pod must have a node: a user can request a token of a pod that waits, and report an end for the job to be backfilled.
func (i *identities) belongs(ctx context.Context, pod *corev1.Pod, job *trainerv1alpha1.TrainJob) error {
	if pod.Labels[jobsetv1alpha2.JobSetNameKey] != job.Name {
		return fmt.Errorf("%w: pod %s is none of its JobSet's", errDenied, pod.Name)
	}
	if pod.Spec.NodeName == "" {
		return fmt.Errorf("%w: pod %s is not scheduled to a node yet", errDenied, pod.Name)
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
