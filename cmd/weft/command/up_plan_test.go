package command

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/plan"
)

// asWeft is the environment's variable with which the test's binary is weft, so
// that what starts processes of itself can be tested.
const asWeft = "WEFT_TEST_AS_WEFT"

// process is weft in a process of its own.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   syncBuffer // standard output
	log   syncBuffer // standard error
	ended chan struct{}
}

// startWeft runs weft in a process of its own until the test ends.
func startWeft(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asWeft+"=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(testwait.Limit):
			p.cmd.Process.Kill()
			<-p.ended
		}
		if t.Failed() {
			t.Logf("weft %s said:\n%s%s", strings.Join(args, " "), p.out.String(), p.log.String())
		}
	})
	return p
}

// openDir returns a directory that goes with the test, and that users other than
// root can get to: controllers leave root.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// says waits until the process has said something, and fails if it ends.
func (p *process) says(text string) {
	p.t.Helper()
	testwait.Until(p.t, "weft says "+text, func() bool {
		select {
		case <-p.ended:
			p.t.Fatalf("weft has ended: %s%s", p.out.String(), p.log.String())
		default:
		}
		return strings.Contains(p.out.String(), text)
	})
}

// ends sends a signal and waits for the end, which is to be with status 0.
func (p *process) ends(signal os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(testwait.Limit):
		p.t.Fatalf("weft does not end by %v", signal)
	}
	if status := p.cmd.ProcessState.ExitCode(); status != 0 {
		p.t.Errorf("status %d after %v: %s", status, signal, p.log.String())
	}
}

// workers waits until all processes are up and have carried out the plan, and
// returns their pids, by name.
func workers(t *testing.T, flags string) (pids map[string]int) {
	t.Helper()
	testwait.Until(t, "all workers are up and current", func() bool {
		var m struct {
			Workers []struct {
				Process, State string
				Pid            int
				Current        bool
			}
		}
		if err := json.Unmarshal([]byte(must(t, "get workers -o json"+flags)), &m); err != nil {
			t.Fatal(err)
		}
		pids = map[string]int{}
		for _, w := range m.Workers {
			if w.State != "up" || !w.Current {
				return false
			}
			pids[w.Process] = w.Pid
		}
		return true
	})
	return pids
}

// gone reports whether all processes have ended.
func gone(pids map[string]int) bool {
	for _, pid := range pids {
		if syscall.Kill(pid, 0) == nil {
			return false
		}
	}
	return true
}

// A plan runs in processes of its own, is looked at, exchanged while it runs,
// and ends with all of its processes; started again on the same state, it goes
// on.
func TestUpPlan(t *testing.T) {
	dir, north := openDir(t), freeAddress(t)
	t.Setenv("WEFT_SERVER", "http://"+north)
	flags := []string{"--listen", freeAddress(t), "--http", north, "--data-dir", dir, "--log-level", "warn"}
	first := startWeft(t, append([]string{"up", "split"}, flags...)...)
	processes := len(splitWorkers(t))
	first.says(fmt.Sprintf(" is up; plan split, %d processes; OpenFlow on tcp:127.0.0.1:", processes))
	first.says("; northbound on http://127.0.0.1:")
	first.says("; bus nats://127.0.0.1:")
	split := workers(t, "")
	if len(split) != processes {
		t.Errorf("%v; want one for each worker", split)
	}
	if out := must(t, "get workers"); !regexp.MustCompile(`(?m)^WORKER +STATE +PID .*\n`).MatchString(out) || !regexp.MustCompile(`(?m)^forwarding +up +\d+ .* forwarding`).MatchString(out) {
		t.Errorf("weft get workers:\n%s", out)
	}
	for _, format := range []string{"text", "svg", "json", "yaml"} {
		if out := must(t, "plan show --running -o "+format); !strings.Contains(out, "split") || !strings.Contains(out, "southbound") {
			t.Errorf("weft plan show --running -o %s:\n%s", format, out)
		}
	}

	// What would change is said and not done; a mistake has its line.
	if out := must(t, "apply split"); out != "nothing changes: this is the plan in force\n" {
		t.Errorf("weft apply split: %s", out)
	}
	if out := must(t, "apply scale --dry-run"); !strings.Contains(out, "routing") {
		t.Errorf("weft apply scale --dry-run: %s", out)
	}
	var answer struct{ Changes []string }
	if err := json.Unmarshal([]byte(must(t, "apply scale --dry-run -o json")), &answer); err != nil || len(answer.Changes) == 0 {
		t.Errorf("weft apply scale --dry-run -o json: %v %v", err, answer.Changes)
	}
	broken := writeFile(t, "broken.yaml", "workers:\n  all:\n    services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]\nconfig:\n  forwarding:\n    mode: magic\n")
	if status, out, errs := weftCommand("apply", broken); status != 1 || out != "" || !strings.Contains(errs, broken+":6: service forwarding: mode: \"magic\"") {
		t.Errorf("weft apply of a broken file: status %d, %s%s", status, out, errs)
	}
	if now := workers(t, ""); fmt.Sprint(now) != fmt.Sprint(split) {
		t.Errorf("processes %v; want %v still", now, split)
	}

	status, out, errs := weftCommand("apply", "scale")
	if status != 0 || !strings.Contains(errs, "now running plan scale, 6 processes, ") {
		t.Fatalf("weft apply scale: status %d, %s%s", status, out, errs)
	}
	scale := workers(t, "")
	if len(scale) != 6 || scale["southbound"] != split["southbound"] {
		t.Errorf("processes %v after %v", scale, split)
	}
	if out := must(t, "plan show --running"); !strings.HasPrefix(out, fmt.Sprintf("scale: %d services in 6 processes", len(usualSpecs()))) {
		t.Errorf("weft plan show --running after weft apply scale:\n%s", out)
	}
	if out := must(t, "plan history"); !regexp.MustCompile(`(?s)2 +in-force +scale +\S+ +the northbound.*1 +former +split +- +the start`).MatchString(out) {
		t.Errorf("weft plan history:\n%s", out)
	}
	if out := must(t, "plan rollback 1 --dry-run"); !strings.Contains(out, "~ name: scale -> split") {
		t.Errorf("weft plan rollback: %s", out)
	}
	if out := must(t, "plan show --number 1"); !strings.HasPrefix(out, "split: ") {
		t.Errorf("weft plan show --number 1:\n%s", out)
	}

	// One supervisor per directory.
	second := startWeft(t, "up", "split", "--data-dir", dir, "--listen", freeAddress(t), "--http", freeAddress(t))
	<-second.ended
	if !strings.Contains(second.log.String(), "is in use by process") || second.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("a second weft up in the same directory: %s", second.log.String())
	}
	first.ends(syscall.SIGTERM)
	if !gone(scale) || !gone(split) {
		t.Errorf("processes are left over of %v, %v", split, scale)
	}

	// Again, with a secret of the northbound's.
	third := startWeft(t, append([]string{"up", "split", "--set", "gateway.token=0123456789abcdef"}, flags...)...)
	third.says(fmt.Sprintf(" is up; plan split, %d processes;", processes))
	for _, token := range []string{"", " --token fedcba9876543210"} {
		for _, line := range []string{"get workers", "apply scale", "plan show --running"} {
			if status, _, errs := weftCommand(strings.Fields(line + token)...); status != 1 || !strings.Contains(errs, "token") {
				t.Errorf("weft %s%s: status %d, %s", line, token, status, errs)
			}
		}
	}
	again := workers(t, " --token 0123456789abcdef")
	if len(again) != processes {
		t.Errorf("%v; want one for each worker", again)
	}
	third.ends(syscall.SIGINT)
	if !gone(again) {
		t.Errorf("processes are left over of %v", again)
	}
}

// A controller without a plan says so.
// TestUpPlanPortInUse: weft up of a plan ends as weft up does if it cannot listen,
// with the same message, and leaves no process behind.
func TestUpPlanPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const want = "weft: service southbound: listen for switches: listen tcp %[1]s: bind: address already in use; is another controller running? choose another address with --listen, or the key southbound.listen\n"
	for _, args := range [][]string{{"up"}, {"up", "split"}} {
		dir := openDir(t)
		p := startWeft(t, append(args, "--listen", l.Addr().String(), "--http", freeAddress(t), "--data-dir", dir, "--quiet")...)
		select {
		case <-p.ended:
		case <-time.After(testwait.Limit):
			t.Fatalf("weft %v does not end", args)
		}
		if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.HasSuffix(p.log.String(), fmt.Sprintf(want, l.Addr())) {
			t.Errorf("weft %v: status %d, %q", args, code, p.log.String())
		}
		pids, err := exec.Command("pgrep", "-f", dir).Output()
		if err == nil {
			t.Errorf("weft %v has left processes %s", args, pids)
		}
	}
}

func TestWithoutPlan(t *testing.T) {
	startUp(t, run.UpOptions{})
	if out := must(t, "get workers"); !regexp.MustCompile(`(?m)^\(controller\) +up +` + fmt.Sprint(os.Getpid()) + ` `).MatchString(out) {
		t.Errorf("weft get workers:\n%s", out)
	}
	for _, line := range []string{"apply split", "apply split --dry-run", "plan show --running"} {
		if status, out, errs := weftCommand(strings.Fields(line)...); status != 1 || out != "" || !strings.Contains(errs, "one process without a plan; start it with weft up PLAN") {
			t.Errorf("weft %s: status %d, %s%s", line, status, out, errs)
		}
	}
}

// A process without a bus, or with one that is not there or does not know it,
// ends and says why.
func TestWorkerWithoutBus(t *testing.T) {
	for line, want := range map[string]struct {
		status int
		text   string
	}{
		"worker":                    {2, "give --bus, --process"},
		"worker --process a --bus ": {2, "--process and --bus want values"},
		"worker --process a --bus nats://127.0.0.1:1 --wait 300ms":              {1, "127.0.0.1:1"},
		"worker --process a --bus nats://127.0.0.1:1 --bus-token-file /nowhere": {1, "secret of the bus: open /nowhere"},
		"worker --process a --bus nats://127.0.0.1:1 --certs /nowhere":          {1, "/nowhere"},
		"worker --process a --bus nats://127.0.0.1:1 --log-level loud":          {2, "allowed: debug, info, warn, error"},
		"worker extra --process a --bus nats://127.0.0.1:1":                     {2, "nothing after it but flags"},
	} {
		status, out, errs := weftCommand(strings.Split(line, " ")...)
		if status != want.status || out != "" || !strings.Contains(errs, want.text) || !strings.HasPrefix(errs, "weft: ") {
			t.Errorf("weft %s: status %d, %s%s; want %d and %q", line, status, out, errs, want.status, want.text)
		}
	}
}

// TestWorkerBesideTheFirstUp: a worker that is started before there is a bus, a
// bucket or a plan waits for them, and says of what if it waits in vain.
func TestWorkerBesideTheFirstUp(t *testing.T) {
	t.Parallel()
	dir, config := t.TempDir(), bus.Config{Directory: t.TempDir(), Listen: freeAddress(t)}
	open := func() *bus.Store {
		t.Helper()
		store, err := bus.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
	store := open()
	worker := []string{"worker", "--process", "routing", "--bus", store.URL(), "--bus-token-file", writeFile(t, "secret", store.Access().Token), "--data-dir", dir, "--log-level", "warn"}
	if status, _, errs := weftCommand(append(worker, "--wait", "1s")...); status != 1 || !strings.Contains(errs, "there is no plan on the bus yet") {
		t.Errorf("a worker without a plan ends with %d, %s", status, errs)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	late := startWeft(t, append(worker, "--user", "root")...) // whose secret it reads
	store = open()
	p, err := plan.Parse("p", []byte("name: p\nworkers:\n  a: {services: [southbound, discovery, hosts, flowrules, stats, gateway]}\n  routing: {services: [paths, forwarding]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	directory, err := members.OpenDirectory(t.Context(), store)
	if err == nil {
		err = directory.Take(t.Context(), p, planner.AllSpecs())
	}
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the worker has joined", func() bool {
		select {
		case <-late.ended:
			t.Fatalf("the worker has ended: %s", late.log.String())
		default:
		}
		entries, err := directory.Entries(t.Context())
		return err == nil && len(entries) == 1 && entries[0].Process == "routing"
	})
}

// TestApplyWithoutGateway checks that a plan after which nobody could talk to
// the controller is refused before anybody is asked.
func TestApplyWithoutGateway(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mute.yaml")
	if err := os.WriteFile(file, []byte("name: mute\nworkers:\n  a: {services: [southbound, forwarding, paths, discovery, hosts, flowrules]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{{"apply", file}, {"apply", file, "--dry-run"}} {
		status, out, errs := weftCommand(append(line, "--server", "http://127.0.0.1:1")...)
		if status != 1 || out != "" || !strings.HasPrefix(errs, "weft: plan mute has no gateway") {
			t.Errorf("weft %s: status %d, %s%s", strings.Join(line, " "), status, out, errs)
		}
	}
}

// Flags that are for a controller without a plan are refused with one.
func TestUpPlanFlags(t *testing.T) {
	config := writeFile(t, "weft.yaml", "forwarding: {mode: proactive}\n")
	broken := writeFile(t, "broken.yaml", "workers:\n  a: {services: [paths]}\n")
	for line, want := range map[string]struct {
		status int
		text   string
	}{
		"up split --config " + config:                {2, "put config: and workers: into the plan"},
		"up split --services paths":                  {2, "put config: and workers: into the plan"},
		"up multi --listen 127.0.0.1:6653":           {2, "write the addresses into the plan"},
		"up multi --http 127.0.0.1:8181":             {2, "write the addresses into the plan"},
		"up split --log-level loud":                  {2, "allowed: debug, info, warn, error"},
		"up split --listen nowhere":                  {2, "want HOST:PORT, tcp:HOST:PORT, tls:HOST:PORT or unix:PATH"},
		"up split scale":                             {2, "want weft up [PLAN]"},
		"up " + broken:                               {1, broken + ":2: workers.a.services: paths subscribes to southbound.SwitchChanged"},
		"up split --set nonsense":                    {2, "want service.key=value"},
		"up split --set forwarding.mode=magic":       {2, "mode: \"magic\""},
		"up split --set nonsense.mode=magic":         {2, "settings for \"nonsense\""},
		"up split --certs /nowhere":                  {1, "/nowhere"},
		"up " + filepath.Join(t.TempDir(), "x.yaml"): {2, "it is neither built in (5gc, hydra, multi, scale, single, split) nor a file"},
	} {
		args := append(strings.Fields(line), "--data-dir", t.TempDir())
		status, out, errs := weftCommand(args...)
		if status != want.status || out != "" || !strings.Contains(errs, want.text) {
			t.Errorf("weft %s: status %d, %s%s; want %d and %q", line, status, out, errs, want.status, want.text)
		}
	}
}
