package controller

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationapi "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lockstep-project/lockstep/controller/ratelimit"
)

const (
	// scraperTrusted is the time for which an answer about a token, and a permission, is believed.
	scraperTrusted = time.Minute
	// scraperDenied is the time for which a refusal is believed. A new binding should not take a minute to work.
	scraperDenied = 10 * time.Second
	// scraperPatience bounds one question to the API server.
	scraperPatience = 10 * time.Second
	// scraperPerSecond and scraperBurst limit how often one address may ask with credentials that are not known as a
	// scraper's.
	scraperPerSecond, scraperBurst = 5, 50
	// scrapersKnown is the number of scrapers' credentials that are retained; a cluster has a handful of scrapers, with
	// tokens that change hourly.
	scrapersKnown = 1024
)

// errUnknowable indicates that the API server could not evaluate a token. It is no verdict on the token.
var errUnknowable = errors.New("asking the API server about a token")

// authenticateScrapers makes the filter of the metrics endpoint: 401 without a token or with a wrong one, 403 for an
// account that may not get /metrics, 429 for an address that asks too often and is not known as a scraper's, 500 if the
// API server cannot be asked. controller-runtime's own filter answers a wrong token with 500 and logs it as a fault,
// because a TokenReview gives the refusal as an error.
func authenticateScrapers(c clock.PassiveClock) func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
		return newScraperFilter(config, client, c)
	}
}

func newScraperFilter(config *rest.Config, client *http.Client, c clock.PassiveClock) (metricsserver.Filter, error) {
	reviews, err := authenticationv1.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making a client for token reviews: %w", err)
	}
	permissions, err := authorizationv1.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making a client for access reviews: %w", err)
	}
	authorizing, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: permissions, AllowCacheTTL: scraperTrusted, DenyCacheTTL: scraperDenied,
		WebhookRetryBackoff: &wait.Backoff{Steps: 1},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("making the authorizer of scrapers: %w", err)
	}
	tokens := tokencache.New(scraperTokens{reviews.TokenReviews()}, false, scraperTrusted, scraperDenied)
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		return &scraperFilter{
			authenticate: bearertoken.New(tokens), authorize: authorizing, log: log, next: handler,
			strangers: ratelimit.New(ratelimit.Rate{PerSecond: scraperPerSecond, Burst: scraperBurst}, c),
			known:     lru.New(scrapersKnown),
		}, nil
	}, nil
}

// scraperTokens authenticates bearer tokens by TokenReview. A token that the API server refuses is a false, a question
// that it does not answer is errUnknowable.
type scraperTokens struct {
	reviews authenticationv1.TokenReviewInterface
}

// AuthenticateToken implements authenticator.Token.
func (s scraperTokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, scraperPatience)
	defer cancel()
	review := &authenticationapi.TokenReview{Spec: authenticationapi.TokenReviewSpec{Token: token}}
	review, err := s.reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", errUnknowable, err)
	}
	if !review.Status.Authenticated {
		return nil, false, nil
	}
	extra := map[string][]string{}
	for key, values := range review.Status.User.Extra {
		extra[key] = values
	}
	account := review.Status.User
	return &authenticator.Response{User: &user.DefaultInfo{
		Name: account.Username, UID: account.UID, Groups: account.Groups, Extra: extra,
	}}, true, nil
}

// scraperFilter lets a request pass if its token may.
type scraperFilter struct {
	authenticate authenticator.Request
	authorize    authorizer.Authorizer
	log          logr.Logger
	next         http.Handler
	// strangers limits each address, for each new token is a question to the API server. known are the digests of
	// credentials that were admitted, until they are wrong: a flood from a scraper's address does not shut it out.
	strangers *ratelimit.Buckets
	known     *lru.Cache
}

// ServeHTTP implements http.Handler.
func (f *scraperFilter) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	credentials := sha256.Sum256([]byte(request.Header.Get("Authorization")))
	if _, known := f.known.Get(credentials); !known {
		source, _, _ := net.SplitHostPort(request.RemoteAddr)
		if !f.strangers.Take(source) {
			writer.Header().Set("Retry-After", strconv.Itoa(int(f.strangers.Wait().Seconds())))
			http.Error(writer, "Too many requests", http.StatusTooManyRequests)
			return
		}
	}
	switch code := f.judge(request); code {
	case http.StatusOK:
		f.known.Add(credentials, nil)
		f.next.ServeHTTP(writer, request)
	case http.StatusInternalServerError:
		http.Error(writer, "Internal error", code)
	case http.StatusUnauthorized:
		f.known.Remove(credentials)
		writer.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(writer, "Unauthorized", code)
	default:
		http.Error(writer, "Forbidden", code)
	}
}

// judge returns 200 for a request that may pass, and otherwise the code with which it is refused: 401, 403, or 500 if
// there is no verdict.
func (f *scraperFilter) judge(request *http.Request) (code int) {
	who, ok, err := f.authenticate.AuthenticateRequest(request)
	switch {
	case errors.Is(err, errUnknowable):
		f.log.Error(err, "Authenticating a scraper")
		return http.StatusInternalServerError
	case !ok || err != nil: // the error of a wrong token has no further information
		return http.StatusUnauthorized
	}
	ctx, cancel := context.WithTimeout(request.Context(), scraperPatience)
	defer cancel()
	decision, reason, err := f.authorize.Authorize(ctx, authorizer.AttributesRecord{
		User: who.User, Verb: strings.ToLower(request.Method), Path: request.URL.Path,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return http.StatusOK
	case err != nil:
		f.log.Error(err, "Authorizing a scraper", "user", who.User.GetName())
		return http.StatusInternalServerError
	default:
		f.log.V(2).Info("Refused a scraper", "user", who.User.GetName(), "reason", reason)
		return http.StatusForbidden
	}
}
