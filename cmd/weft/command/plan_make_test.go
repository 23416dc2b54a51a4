package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/cmd/weft/planning"
)

// madeFile puts text into a file of a name in a directory of the test.
func madeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// mustWeft runs a command that must succeed.
func mustWeft(t *testing.T, args ...string) string {
	t.Helper()
	status, out, errs := weftCommand(args...)
	if status != 0 {
		t.Fatalf("weft %s: status %d: %s", strings.Join(args, " "), status, errs)
	}
	return out
}

func TestPlansAreMadeExplainedAndCompared(t *testing.T) {
	dir := t.TempDir()
	quick := []string{"--runs", "2", "--steps", "2000", "--network", "fattree:k=4", "--packet-ins", "1000"}
	one := mustWeft(t, append([]string{"plan", "make", "--servers", "2"}, quick...)...)
	first := madeFile(t, dir, "one.yaml", one)
	if out := mustWeft(t, "check", first); !strings.Contains(out, "a plan without mistakes") {
		t.Errorf("weft check: %s", out)
	}
	servers := madeFile(t, dir, "servers.yaml", "servers:\n  a: {cpu: 2, memory: 4GiB, address: 10.0.0.1, domain: A}\n  b: {cpu: 2, memory: 4GiB, address: 10.0.0.2, domain: B}\n  c: {cpu: 2, memory: 4GiB, address: 10.0.0.3, domain: B}\n")
	two := mustWeft(t, append([]string{"plan", "make", "--servers", servers, "--partitions", "2", "--delay", "300us", "--pin", "gateway=a", "--replicas", "forwarding=2", "--plain"}, quick...)...)
	second := madeFile(t, dir, "two.yaml", two)
	if out := mustWeft(t, "check", second); !strings.Contains(out, "a plan without mistakes") {
		t.Errorf("weft check: %s", out)
	}
	for _, want := range []string{"machine: a", "10.0.0.1:0", "p1:", "p2:", "class: compute", "class: realtime", "# Server a: "} {
		if !strings.Contains(two, want) {
			t.Errorf("the plan has no %q:\n%s", want, two)
		}
	}
	if again := mustWeft(t, append([]string{"plan", "make", "--servers", servers, "--partitions", "2", "--delay", "300us", "--pin", "gateway=a", "--replicas", "forwarding=2", "--plain"}, quick...)...); again != two {
		t.Errorf("made again it is another:\n%s\n%s", two, again)
	}

	var e planning.Explained
	if err := json.Unmarshal([]byte(mustWeft(t, "plan", "explain", second, "-o", "json")), &e); err != nil {
		t.Fatal(err)
	}
	if e.Cost < e.Bound || len(e.Broken) > 0 || len(e.Loads) != 3 || e.Best != e.Cost {
		t.Errorf("explained: %+v", e)
	}
	if out := mustWeft(t, "plan", "explain", second, "gateway"); !strings.Contains(out, "gateway is on a: it is pinned to a") {
		t.Errorf("why the gateway is there: %s", out)
	}
	for _, wrong := range [][]string{{"telepathy"}, {"southbound"}} {
		if status, _, errs := weftCommand(append([]string{"plan", "explain", second}, wrong...)...); status == 0 || !strings.Contains(errs, "southbound/p1") {
			t.Errorf("explain %s: status %d, %s", wrong, status, errs)
		}
	}

	var u planning.Update
	pinned := madeFile(t, dir, "pinned.yaml", mustWeft(t, append([]string{"plan", "make", "--servers", "2", "--pin", "gateway=s2", "--pin", "discovery=s1", "--isolate", "process"}, quick...)...))
	if err := json.Unmarshal([]byte(mustWeft(t, "plan", "diff", first, pinned, "-o", "json")), &u); err != nil {
		t.Fatal(err)
	}
	if !u.Weighed || u.Update == nil {
		t.Errorf("compared: %+v", u)
	}
	out := mustWeft(t, "plan", "diff", first, "single")
	if !strings.Contains(out, "moves are not weighed") {
		t.Errorf("of a plan that nobody made: %s", out)
	}
}

func TestWhatCannotBeMadeIsSaid(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		want string
		args []string
	}{
		{"neither a file nor", []string{"--network", "nothing"}},
		{"want a number, or auto", []string{"--network", "ring:n=4", "--partitions", "few"}},
		{"there is no such server", []string{"--network", "ring:n=4", "--pin", "gateway=mars"}},
		{"want NAME=VALUE", []string{"--network", "ring:n=4", "--pin", "gateway"}},
		{"servers.yaml:2: servers.a.cpu", []string{"--network", "ring:n=4", "--servers", madeFile(t, dir, "servers.yaml", "servers:\n  a: {cpu: many}\n")}},
		{"profile.yaml:1: unknown key mesured", []string{"--network", "ring:n=4", "--profile", madeFile(t, dir, "profile.yaml", "mesured: {}\n")}},
		{"no placement", []string{"--network", "ring:n=4", "--isolate", "server"}},
		{"want a time above 0", []string{"--network", "ring:n=4", "--heartbeat-deadline", "soon"}},
	} {
		if status, _, errs := weftCommand(append([]string{"plan", "make"}, c.args...)...); status == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: status %d, %s; want %q in it", c.args, status, errs, c.want)
		}
	}
}
