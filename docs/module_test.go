package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testwait"
)

// census is the module of somebody else, with a service that counts hosts and a program
// that has it beside Weft's services.
var census = map[string]string{
	"census/census.go": `// Package census counts hosts.
package census

import (
	"context"
	"errors"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

type config struct {
	Least int ` + "`yaml:\"least\"`" + `
}

func (c *config) Validate() error {
	if c.Least < 0 {
		return errors.New("least: want 0 or more")
	}
	return nil
}

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name: "census", Doc: "counts hosts", Subscribes: weft.Subjects(api.HostChangedEvent),
		Class: weft.Latency, Scale: weft.Single, Config: &config{}, Run: run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	seen := env.Metric.Counter("events_total", "Changes of hosts.")
	env.Log.Info("census", "least", env.Config.(*config).Least)
	weft.On(env, api.HostChangedEvent, func(context.Context, *api.HostChanged) { seen.Add(1) })
	return weft.Serve(ctx, env)
}
`,
	"main.go": `package main

import (
	"os"

	"example.org/census/census"
	"github.com/weft-sdn/weft/cmd/weft/command"
)

func main() { os.Exit(command.Main(os.Args[1:], os.Stdout, os.Stderr, census.Spec())) }
`,
	"plan.yaml": `name: counted
transport: grpc
workers:
  core:
    services: [southbound, intake, discovery, hosts, firewall, paths, balancer, router, nat, forwarding, flowrules, stats, heartbeat, qos, tenants, ryu, gateway]
  counter:
    services: [census]
config:
  census: {least: 3}
`,
}

// TestModule builds a service of another module into a program of that module
// and runs it by a plan, as a worker of that program.
func TestModule(t *testing.T) {
	dir := t.TempDir()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range census {
		write(t, filepath.Join(dir, name), text)
	}
	// Weft's module beside its own in a workspace, as who changes both works: what is
	// compiled of Weft is compiled once.
	mod := read(t, "go.mod")
	version := regexp.MustCompile(`(?m)^go .*$`).FindString(mod)
	write(t, filepath.Join(dir, "go.mod"), strings.Replace(mod, "module github.com/weft-sdn/weft\n", "module example.org/census\n", 1))
	write(t, filepath.Join(dir, "go.work"), version+"\n\nuse (\n\t.\n\t"+top+"\n)\n")
	run := func(name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("go", "build", "-o", "census.program", "."); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	program := filepath.Join(dir, "census.program")
	if out, err := run(program, "check", "plan.yaml"); err != nil {
		t.Fatalf("weft check: %v\n%s", err, out)
	}
	write(t, filepath.Join(dir, "wrong.yaml"), strings.Replace(census["plan.yaml"], "least: 3", "least: -3", 1))
	if out, err := run(program, "check", "wrong.yaml"); err == nil || !strings.Contains(out, "least: want 0 or more") {
		t.Errorf("weft check of a wrong value: %v\n%s", err, out)
	}

	openflow, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	http, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEFT_SERVER", "http://"+http)
	ctx, stop := context.WithCancel(t.Context())
	up := exec.CommandContext(ctx, program, "up", "plan.yaml", "--listen", openflow, "--http", http, "--data-dir", t.TempDir(), "--user", "root")
	up.Dir = dir
	up.Cancel = func() error { return up.Process.Signal(os.Interrupt) }
	var log strings.Builder
	up.Stderr = &log
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(100 * time.Millisecond) {
		out, err := run(program, "get", "workers")
		if err == nil && counted.MatchString(out) {
			break
		}
		if time.Now().After(end) {
			stop()
			_ = up.Wait()
			t.Fatalf("weft get workers: %v\n%s\n%s", err, out, &log)
		}
	}
	stop()
	_ = up.Wait() // the context's error
	if code := up.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d\n%s", code, &log)
	}
}

// counted is the line of the worker that runs census, in weft get workers.
var counted = regexp.MustCompile(`(?m)^counter +up .* census `)
