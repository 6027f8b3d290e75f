package report_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/score/report"
)

// content is the part of the input of the page's scripts that tests read.
type content struct {
	Busiest float64
	Series  struct{ At []float64 }
	Waits   []struct {
		Name string
		X, Y []float64
	}
	Quality struct {
		Classes []string
		Counts  [][]int
	}
	Latency struct {
		Below           []int64
		Placed, Refused []int
	}
	Map struct {
		Starts, Lasts         []int64
		Jobs, Runs            []int
		First, Count, Bits    []int
		Outages               [][4]int64
		Omitted, OmittedBelow int
		Layout                struct {
			Sections, RackNames []string
			Racks, Squares      []int
			Closed              []int
		}
	}
}

// written is a page and the data that its scripts draw.
func written(t *testing.T, in report.Input) (string, content) {
	t.Helper()
	var out bytes.Buffer
	if err := report.Write(&out, in); err != nil {
		t.Fatal(err)
	}
	return out.String(), unpacked(t, out.String())
}

func unpacked(t *testing.T, page string) content {
	t.Helper()
	found := regexp.MustCompile(`id="data">"([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		t.Fatal("the page has no data")
	}
	text, err := base64.StdEncoding.DecodeString(found[1])
	if err != nil {
		t.Fatal(err)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var c content
	if err := json.NewDecoder(unzip).Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}
