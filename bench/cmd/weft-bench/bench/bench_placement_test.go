package bench

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBenchPlacement(t *testing.T) {
	out, err := benchExecute(t, "placement", "--partitions", "3", "--services", "4", "--servers", "4", "--seed", "2", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var r benchPlacementReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Feasible || !r.Checked || !r.Proven || r.Cost != r.Bound || r.Gap != 0 || r.Shards != 12 || r.Seconds <= 0 {
		t.Errorf("%+v", r)
	}
	for flags, want := range map[string]string{
		"--servers 0":        "0 servers",
		"--slack 0.5":        "slack of 0.5",
		"--compare chaco":    "want metis",
		"--full --plain":     "none of the others can be",
		"--edges 1000000000": "edges between 32 shards",
	} {
		if _, err := benchExecute(t, append([]string{"placement"}, strings.Fields(flags)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", flags, err, want)
		}
	}
}
