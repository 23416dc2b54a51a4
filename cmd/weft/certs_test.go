package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/deploy/certs"
)

func TestCerts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	run := func(want int, line string) (out, errs string) {
		t.Helper()
		status, out, errs := weftCommand(strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
		if status != want {
			t.Fatalf("weft %s: status %d, %s%s", line, status, out, errs)
		}
		return out, errs
	}
	fails := func(status int, line, want string) {
		t.Helper()
		if _, errs := run(status, line); !strings.Contains(errs, want) {
			t.Errorf("weft %s: %s", line, errs)
		}
	}
	fails(1, "certs issue --dir DIR a", "make an authority with weft certs init --dir")
	run(0, "certs init --dir DIR")
	fails(1, "certs init --dir DIR", "only --force replaces it")
	out, _ := run(0, "certs issue --dir DIR ids --app --service firewall --host node7 -o json")
	var list []issued
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || list[0].Action != "issued" ||
		!slices.Equal(list[0].Identities, []string{"weft://app/ids", "weft://service/firewall"}) {
		t.Errorf("%v: %s", err, out)
	}
	fails(2, "certs issue --dir DIR x --days 0", "allowed: 1 and more")
	fails(2, "certs issue --dir DIR", "requires at least 1 arg")
	fails(1, "certs issue --dir DIR ids --app", "only --force replaces it")

	// All workers of a plan; what fits is kept.
	if out, _ := run(0, "certs plan split --dir DIR"); !strings.Contains(out, "issued  weft://worker/southbound weft://service/southbound") {
		t.Error(out)
	}
	for _, name := range []string{"paths", "supervisor"} {
		if _, err := certs.Load(dir, name); err != nil {
			t.Error(err)
		}
	}
	if out, _ := run(0, "certs plan split --dir DIR"); strings.Contains(out, "issued") || strings.Count(out, "kept") != 9 {
		t.Error(out)
	}
	other := writeFile(t, "other.yaml", "workers:\n  southbound: {services: [southbound, hosts], listen: \"10.0.0.7:7001\"}\n  routing: {services: [paths], replicas: 2}\n")
	fails(1, "certs plan --dir DIR "+other, "--force replaces it")
	out, _ = run(0, "certs plan --force --dir DIR "+other)
	for _, want := range []string{"weft://worker/southbound weft://service/southbound weft://service/hosts", "weft://worker/routing-2 weft://service/paths"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	fails(2, "certs plan --dir DIR nonsense", "nonsense")

	out, _ = run(0, "certs show DIR/southbound.crt DIR/ca.crt")
	if !strings.Contains(out, "10.0.0.7") || !strings.Contains(out, "364") || !strings.Contains(out, "3649") {
		t.Error(out)
	}
	out, _ = run(0, "certs show DIR/ca.crt -o json")
	var infos []struct {
		File      string `json:"file"`
		Authority bool   `json:"authority"`
		DaysLeft  int    `json:"days_left"`
	}
	if err := json.Unmarshal([]byte(out), &infos); err != nil || len(infos) != 1 || !infos[0].Authority || infos[0].DaysLeft != 3649 {
		t.Errorf("%v: %s", err, out)
	}
	fails(1, "certs show DIR/ca.key", "the certificate is in the .crt file")
}
