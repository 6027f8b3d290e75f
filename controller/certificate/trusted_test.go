package certificate_test

import (
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-project/lockstep/controller/certificate"
)

// Trusted returns the bundle of the API server, with earlier authorities that are still valid.
func TestTrusted_MatchesTheAPIServerBundle(t *testing.T) {
	clock, cluster := clocktesting.NewFakeClock(birth), newCluster(interceptor.Funcs{})
	keeper := newKeeper(cluster, clock)
	if trusted := keeper.Trusted(); trusted != nil {
		t.Errorf("before the first check %s", trusted)
	}
	for _, at := range []int{0, 10 * 365 * 2 / 3} {
		clock.SetTime(birth.Add(certificate.Period).AddDate(0, 0, at))
		check(t, keeper)
		if want := string(bundles(t, cluster)["a"]); string(keeper.Trusted()) != want || want == "" {
			t.Errorf("after %d days\n%s\nwant\n%s", at, keeper.Trusted(), want)
		}
	}
}
