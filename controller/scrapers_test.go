package controller_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/controller"
)

// reviewer is an API server that knows the tokens "scraper", which may get /metrics, and "stranger", which may not. The
// tokens "unsure" and "undecided" meet an API server that fails.
type reviewer struct {
	asked atomic.Int64
}

func (r *reviewer) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	writer.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(request.URL.Path, "/tokenreviews"):
		r.asked.Add(1)
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(request.Body).Decode(&review)
		switch token := review.Spec.Token; token {
		case "unsure":
			http.Error(writer, "{}", http.StatusServiceUnavailable)
			return
		case "scraper", "stranger", "undecided":
			review.Status = authenticationv1.TokenReviewStatus{
				Authenticated: true, User: authenticationv1.UserInfo{Username: token},
			}
		default:
			review.Status.Error = "[invalid bearer token, token lookup failed]"
		}
		reply(writer, review)
	case strings.HasSuffix(request.URL.Path, "/subjectaccessreviews"):
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(request.Body).Decode(&review)
		if review.Spec.User == "undecided" {
			http.Error(writer, "{}", http.StatusServiceUnavailable)
			return
		}
		asked := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "scraper" && asked.Verb == "get" && asked.Path == "/metrics"
		reply(writer, review)
	default:
		http.NotFound(writer, request)
	}
}

func reply(writer http.ResponseWriter, review any) {
	if err := json.NewEncoder(writer).Encode(review); err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
	}
}

// guarded is the metrics endpoint behind its filter.
func guarded(t *testing.T) (http.Handler, *reviewer) {
	t.Helper()
	return guardedAt(t, clock.RealClock{})
}

func guardedAt(t *testing.T, now clock.PassiveClock) (http.Handler, *reviewer) {
	t.Helper()
	reviews := &reviewer{}
	server := httptest.NewServer(reviews)
	t.Cleanup(server.Close)
	config := &rest.Config{
		Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := controller.AuthenticateScrapers(now)(config, client)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(testr.New(t), http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		_, _ = writer.Write([]byte("secret_total 1\n"))
	}))
	if err != nil {
		t.Fatal(err)
	}
	return handler, reviews
}

// Metrics disclose the trainings of each team. A wrong token is the caller's fault, an API server that does not answer
// is not.
func TestMetricsEndpoint_WhoMayRead(t *testing.T) {
	handler, _ := guarded(t)
	for name, test := range map[string]struct {
		method, path, authorization string
		code                        int
	}{
		"a scraper":                    {authorization: "Bearer scraper", code: 200},
		"in small letters":             {authorization: "bearer scraper", code: 200},
		"no token":                     {code: 401},
		"a wrong token":                {authorization: "Bearer made-up", code: 401},
		"an empty token":               {authorization: "Bearer ", code: 401},
		"no scheme":                    {authorization: "scraper", code: 401},
		"another scheme":               {authorization: "Basic scraper", code: 401},
		"a token behind a blank":       {authorization: "Bearer  scraper", code: 401},
		"two tokens, the wrong first":  {authorization: "Bearer made-up, Bearer scraper", code: 401},
		"a huge token":                 {authorization: "Bearer " + strings.Repeat("a", 100_000), code: 401},
		"an account without the right": {authorization: "Bearer stranger", code: 403},
		"another path":                 {path: "/debug/pprof", authorization: "Bearer scraper", code: 403},
		"a path with more behind it":   {path: "/metrics/", authorization: "Bearer scraper", code: 403},
		"a doubled slash":              {path: "//metrics", authorization: "Bearer scraper", code: 403},
		"another method":               {method: http.MethodPost, authorization: "Bearer scraper", code: 403},
		"no answer about the token":    {authorization: "Bearer unsure", code: 500},
		"no answer about the right":    {authorization: "Bearer undecided", code: 500},
	} {
		t.Run(name, func(t *testing.T) {
			if test.method == "" {
				test.method = http.MethodGet
			}
			if test.path == "" {
				test.path = "/metrics"
			}
			request := httptest.NewRequestWithContext(t.Context(), test.method, test.path, http.NoBody)
			if test.authorization != "" {
				request.Header.Set("Authorization", test.authorization)
			}
			for _, again := range []string{"", "again "} { // from the cache
				response := httptest.NewRecorder()
				handler.ServeHTTP(response, request.Clone(t.Context()))
				body := response.Body.String()
				if response.Code != test.code || strings.Contains(body, "secret") != (test.code == 200) ||
					strings.Contains(body, "stranger") {
					t.Errorf("%sanswer %d %q, want %d", again, response.Code, body, test.code)
				}
				if (response.Header().Get("WWW-Authenticate") == "Bearer") != (test.code == 401) {
					t.Errorf(
						"%sWWW-Authenticate is %q with %d",
						again,
						response.Header().Get("WWW-Authenticate"),
						response.Code,
					)
				}
			}
		})
	}
}

// A fault is not remembered: a scraper that was refused because the API server did not answer is admitted with the next
// request. A verdict is.
func TestMetricsEndpoint_RemembersVerdictsOnly(t *testing.T) {
	handler, reviews := guarded(t)
	for token, want := range map[string]int64{"scraper": 1, "made-up": 1, "unsure": 5} {
		before := reviews.asked.Load()
		for range 5 {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
			request.Header.Set("Authorization", "Bearer "+token)
			handler.ServeHTTP(httptest.NewRecorder(), request)
		}
		if asked := reviews.asked.Load() - before; asked != want {
			t.Errorf("token %s: asked the API server %d times for 5 requests, want %d", token, asked, want)
		}
	}
}

// Each token that was made up is a question to the API server. An address may ask 50 at once and 5 a second; a scraper
// that was admitted before is admitted from the same address all the same, and other addresses have their own limit.
func TestMetricsEndpoint_LimitsEachAddress(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC))
	handler, reviews := guardedAt(t, now)
	scrape := func(source, token string) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
		request.RemoteAddr = source + ":1234"
		request.Header.Set("Authorization", "Bearer "+token)
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		return response
	}
	flood := func(name string) (codes map[int]int) {
		codes = map[int]int{}
		for i := range 300 {
			response := scrape("10.0.0.1", fmt.Sprintf("%s-%d", name, i))
			codes[response.Code]++
			wait, limited := response.Header().Get("Retry-After"), response.Code == http.StatusTooManyRequests
			if (wait == "1") != limited {
				t.Errorf("Retry-After is %q with %d", wait, response.Code)
			}
		}
		return codes
	}
	if code := scrape("10.0.0.1", "scraper").Code; code != http.StatusOK {
		t.Fatalf("a scraper: %d", code)
	}
	before := reviews.asked.Load()
	if codes := flood("first"); codes[401] != 49 || codes[429] != 251 {
		t.Errorf("answers %v to a flood, want 49 times 401 and then 429", codes)
	}
	if asked := reviews.asked.Load() - before; asked != 49 {
		t.Errorf("the API server was asked %d times, want 49", asked)
	}
	if code := scrape("10.0.0.1", "scraper").Code; code != http.StatusOK {
		t.Errorf("the scraper at the address of the flood: %d", code)
	}
	if code := scrape("10.0.0.1", "stranger").Code; code != http.StatusTooManyRequests {
		t.Errorf("an account without the right at the address of the flood: %d", code)
	}
	if code := scrape("10.0.0.2", "made-up").Code; code != http.StatusUnauthorized {
		t.Errorf("another address: %d", code)
	}
	now.SetTime(now.Now().Add(time.Second))
	if codes := flood("second"); codes[401] != 5 {
		t.Errorf("answers %v to a flood a second later, want 5 times 401", codes)
	}
}
