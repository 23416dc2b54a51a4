package command

import (
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/cmd/weft/run"
)

func refused(t *testing.T, status int, want string, args ...string) {
	t.Helper()
	got, out, errs := weftCommand(args...)
	if got != status || !strings.Contains(out+errs, want) {
		t.Errorf("weft %s: status %d, %s%s; want %d and %q", strings.Join(args, " "), got, out, errs, status, want)
	}
}

func TestConfigCheck(t *testing.T) {
	bad := writeFile(t, "bad.yaml", "stats:\n  intervall: 2s\n  parallel: many\nforwardng:\n  mode: proactive\nhosts:\n  age: never\n  gateways: {a: b}\n")
	status, out, errs := weftCommand("config", "check", bad)
	for _, want := range []string{
		bad + ":2: unknown key stats.intervall; allowed: ", "did you mean interval?", bad + ":3: stats.parallel: want a whole number",
		bad + `:4: settings for "forwardng", which is not among the services that run`, "did you mean forwarding?",
		bad + `:7: hosts.age: want a duration, such as 500ms or 3s, not "never"`, bad + ":8: hosts.gateways: want a list",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\ndoes not say %s", out, want)
		}
	}
	if status != 1 || !strings.Contains(errs, "5 mistakes") || strings.Count(out, "\n") != 5 {
		t.Errorf("status %d, %s", status, errs)
	}
	var r planner.CheckResult
	if _, out, _ := weftCommand("config", "check", bad, "-o", "json"); json.Unmarshal([]byte(out), &r) != nil || len(r.Problems) != 5 || r.Problems[4].Line != 8 {
		t.Errorf("as JSON: %+v", r)
	}
	refused(t, 0, "a configuration without mistakes", "config", "check", writeFile(t, "good.yaml", "stats: {interval: 2s}\n"))
	refused(t, 1, "is a plan", "config", "check", writeFile(t, "plan.yaml", "workers: {a: {services: [stats]}}\n"))
	refused(t, 1, "is a topology", "config", "check", writeFile(t, "topology.yaml", "switches: [s1]\n"))
	refused(t, 1, "no such file", "config", "check", "/nowhere.yaml")
	refused(t, 1, "no anchors", "config", "check", writeFile(t, "anchor.yaml", "stats: &a {interval: 2s}\nhosts: *a\n"))
	refused(t, 2, "want 1ms to 10m", "config", "apply", bad, "--limit", "1h")
	refused(t, 2, "want a number", "config", "rollback", "last")
	refused(t, 2, "leave --running", "config", "show", "--file", bad, "--running")
	refused(t, 1, "stats.intervall", "config", "show", "--file", bad)
	refused(t, 0, "interval: 2s", "config", "show", "--file", writeFile(t, "shown.yaml", "stats: {interval: 2s}\n"))
}

// The life of a configuration in a controller of one process, over restarts.
func TestConfigOfOneProcess(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, "weft.yaml", "# ours\nstats: {interval: 3s}\n")
	r := startUp(t, run.UpOptions{DataDir: dir, Config: file})
	if out := must(t, "config show"); !strings.Contains(out, "3s") || !strings.Contains(out, "what the controller was started with, in-force") {
		t.Error(out)
	}
	other := writeFile(t, "other.yaml", "stats: {interval: 2s}\nforwarding: {idle_timeout: 30s}\n")
	for _, line := range []string{"config apply " + other + " --dry-run", "config apply " + other} {
		out := must(t, line)
		for _, want := range []string{
			"~ stats.interval: 3s -> 2s (taken over while it runs)", "~ forwarding.idle_timeout: 2m0s -> 30s (service forwarding is started again)",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("weft %s: %s\ndoes not say %s", line, out, want)
			}
		}
	}
	if out := must(t, "config apply "+other); !strings.Contains(out, "nothing changes") {
		t.Error(out)
	}
	if out := must(t, "config history"); !strings.Contains(out, "2       in-force") || !strings.Contains(out, "1       good") || !strings.Contains(out, "other.yaml") {
		t.Error(out)
	}
	refused(t, 1, "configuration 2 is in force, not 1", "config", "apply", file, "--made-from", "1")
	refused(t, 1, "configuration 9 is not in the history", "config", "show", "--number", "9")
	// The gateway itself: the command waits until it is back.
	gateway := writeFile(t, "gateway.yaml", "stats: {interval: 2s}\ngateway: {max_event_clients: 7}\n")
	if out := must(t, "config apply "+gateway); !strings.Contains(out, "configuration 3 is in force") || !strings.Contains(out, "its clients connect anew") {
		t.Error(out)
	}
	// One that names a file, and one whose service cannot start.
	refused(t, 1, "gateway.token_file: it names programs or files, so it is decided at start", "config", "apply", writeFile(t, "token.yaml", "gateway: {token_file: /nowhere}\n"))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	refused(t, 1, "the former one is back in force", "config", "apply", writeFile(t, "taken.yaml", "ryu: {listen: "+taken.Addr().String()+"}\n"))
	if out := must(t, "config show"); !strings.Contains(out, "max_event_clients: 7") {
		t.Error(out)
	}

	restarted := func(o run.UpOptions, want string) {
		t.Helper()
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		o.DataDir = dir
		r = startUp(t, o)
		if out := must(t, "config show"); !strings.Contains(out, want) {
			t.Errorf("%s\ndoes not say %s", out, want)
		}
	}
	restarted(run.UpOptions{Config: file}, "max_event_clients: 7") // the file has not changed
	restarted(run.UpOptions{}, "max_event_clients: 7")             // no file
	if err := os.WriteFile(file, []byte("stats: {interval: 4s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	restarted(run.UpOptions{Config: file}, "interval: 4s") // another file
	restarted(run.UpOptions{}, "{}")                       // it is not given any more
	if out := must(t, "config rollback 3"); !strings.Contains(out, "+ ") && !strings.Contains(out, "~ ") {
		t.Error(out)
	}
	restarted(run.UpOptions{Set: []string{"stats.interval=8s"}}, "max_event_clients: 7")
	if out := must(t, "config apply "+file+" --dry-run"); !strings.Contains(out, "stats.interval stays as --set says") {
		t.Error(out)
	}
}
