package command

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/deploy/certs"
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
	var list []planner.Issued
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || list[0].Action != "issued" ||
		!slices.Equal(list[0].Identities, []string{"weft://app/ids", "weft://service/firewall"}) {
		t.Errorf("%v: %s", err, out)
	}
	fails(2, "certs issue --dir DIR x --days 0", "allowed: 1 and more")
	fails(2, "certs issue --dir DIR", "want weft certs issue NAME...")
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
	if out, _ := run(0, "certs plan split --dir DIR"); strings.Contains(out, "issued") || strings.Count(out, "kept") != len(splitWorkers(t))+1 {
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

// The PKI of switches and of the northbound, as a person makes it.
func TestCertsOfTheNetwork(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	run := func(line string) string {
		t.Helper()
		return must(t, strings.ReplaceAll(line, "DIR", dir))
	}
	fails := func(status int, line, want string) {
		t.Helper()
		if got, _, errs := weftCommand(strings.Fields(strings.ReplaceAll(line, "DIR", dir))...); got != status || !strings.Contains(errs, want) {
			t.Errorf("weft %s: status %d, %s; want %d, %s", line, got, errs, status, want)
		}
	}
	fails(1, "certs switch 1 --dir DIR", "make an authority")
	if out := run("certs controller --dir DIR --host 192.0.2.1"); !strings.Contains(out, "weft://controller/controller") || !strings.Contains(out, "authority: "+filepath.Join(dir, "ca.crt")) {
		t.Errorf("%s", out)
	}
	fails(1, "certs controller --dir DIR", "only --force replaces it")
	out := run("certs switch 1 00000000000000ab --dir DIR --controller ssl:192.0.2.1:6653 --bridge br0")
	for _, want := range []string{
		"weft://switch/0000000000000001", "switch-00000000000000ab.crt",
		"ovs-vsctl set-ssl /etc/openvswitch/switch-0000000000000001.key /etc/openvswitch/switch-0000000000000001.crt /etc/openvswitch/ca.crt\n",
		"ovs-vsctl set bridge br0 other-config:datapath-id=00000000000000ab -- set-controller br0 ssl:192.0.2.1:6653\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in:\n%s", want, out)
		}
	}
	fails(1, "certs switch 1 --dir DIR", "only --force replaces it")
	fails(2, "certs switch xyz --dir DIR", "xyz")
	fails(2, "certs switch 1 --dir DIR --days 0", "allowed: 1 and more")
	if out := run("certs switch 1 2 --together edge7 --dir DIR"); !strings.Contains(out, "weft://switch/0000000000000001 weft://switch/0000000000000002") {
		t.Errorf("%s", out)
	}
	if out := run("certs renew --dir DIR"); strings.Contains(out, "renewed") || strings.Count(out, "kept") != 4 {
		t.Errorf("%s", out)
	}
	if out := run("certs renew edge7 --dir DIR --days 400"); !strings.Contains(out, "renewed") {
		t.Errorf("%s", out)
	}
	fails(1, "certs renew ca --dir DIR", "the authority is not renewed")
	list, err := certs.Read(certs.File(dir, "controller"))
	if err != nil || !slices.Contains(list[0].Hosts, "192.0.2.1") || !slices.Contains(list[0].Hosts, "localhost") {
		t.Errorf("%+v %v", list, err)
	}
}

// splitWorkers returns the names of the workers of the plan split.
func splitWorkers(t *testing.T) (names []string) {
	t.Helper()
	p, err := planner.ReadPlan("split")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Workers {
		names = append(names, w.Name)
	}
	return names
}
