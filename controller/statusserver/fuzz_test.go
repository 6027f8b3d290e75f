package statusserver_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/controller/statusserver"
)

// FuzzBody holds that any body is answered, with one of the documented codes, and that an echo says again what was read.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{}`, `null`, `[]`, `{"trainerStatus":{}}`, `{"trainerStatus":null}`, progress(50), progress(-1), `{"trainerStatus":`,
		`{"TRAINERSTATUS":{"metrics":[{"name":"checkpoint_unix_seconds","value":"1732266000.5"}]}}`, `{"a":` + "\x00",
		`{"trainerStatus":{"progressPercentage":1e2,"lastUpdatedTime":"2026-11-22T10:00:00+14:00"}}`,
		`{"trainerStatus":{"lastUpdatedTime":"9999-12-31T23:59:59-01:00"}}`, `{"trainerStatus":{"metrics":[null,{}]}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		report, err := statusserver.ParseReport(body)
		if err == nil {
			echo, err := json.Marshal(report)
			if err != nil {
				t.Fatalf("%q cannot be echoed: %v", body, err)
			}
			again, err := statusserver.ParseReport(echo)
			if err != nil {
				t.Fatalf("the echo %q of %q: %v", echo, body, err)
			}
			if second, _ := json.Marshal(again); string(second) != string(echo) {
				t.Fatalf("%q is echoed as %q, and that as %q", body, echo, second)
			}
		}
		if len(body) > 1<<10 { // the whole way is slower
			return
		}
		w := newWorld(t, family("train")...)
		code, answer := w.post("train", token("train-pod", "train"), string(body))
		want := []int{http.StatusOK}
		switch {
		case err != nil:
			want = []int{http.StatusUnprocessableEntity}
		case report.TrainerStatus == nil && w.status("train") != nil:
			t.Fatalf("%q was written", body)
		}
		if !slices.Contains(want, code) || !json.Valid([]byte(answer)) {
			t.Fatalf("%q: answer %d %s, want %v", body, code, answer, want)
		}
	})
}
