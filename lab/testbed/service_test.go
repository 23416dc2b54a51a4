package testbed

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// TestService: a lab that weft lab serve brings up, with the identity and the machines' keys that the
// service has, and with no other files.
func TestService(t *testing.T) {
	t.Parallel()
	s := newSite(t, "m1", "m2")
	name := fmt.Sprintf("ts%d", os.Getpid())
	files := []string{"--ssh-identity", s.path("identity"), "--ssh-known-hosts", s.path("known_hosts")}
	ask, service := s.serve(append(files, "--allow", "up,down,exec,capture")...)
	text := strings.NewReplacer("known_hosts: known_hosts\n", "", "identity: identity\n", "", ", weft: %s", "").Replace(two)
	up := func(machines string) map[string]string {
		return map[string]string{"file": fmt.Sprintf(spreadNet, name), "machines": machines}
	}
	for want, machines := range map[string]string{
		"names no files of ssh": text + "identity: " + s.path("identity") + "\n",
		"names no program":      fmt.Sprintf(strings.ReplaceAll(two, "known_hosts: known_hosts\nidentity: identity\n", ""), "/bin/sh"),
		"is not where ssh goes": "machines: [{name: m1, ssh: '-oProxyCommand=x'}]",
	} {
		if said := ask("labs:up", up(machines), nil); !strings.Contains(said, want) {
			t.Errorf("%s; want %q", said, want)
		}
	}
	var begun struct{ Job, Lab string }
	ask("labs:up", up(text), &begun)
	job := jobDone(ask, begun.Job)
	if !job.Done || job.Error != "" || len(job.Steps) != 6 || job.Steps[1].Node != "s2" || job.Steps[1].State != "done" || job.Steps[1].Text != "machine m2: up" {
		t.Fatalf("%+v", job)
	}
	var details struct {
		State    string
		Machines []string
		Graph    struct {
			Nodes []struct{ Name, Machine string }
		}
	}
	ask("labs/"+name, nil, &details)
	if details.State != "up" || len(details.Machines) != 2 || details.Graph.Nodes[1].Machine != "m2" {
		t.Errorf("%+v", details)
	}
	var ping struct{ Sent, Received int }
	if said := ask("labs/"+name+"/ping", map[string]string{"from": "h1", "to": "h2"}, &ping); ping.Sent != 3 || ping.Received == 0 {
		t.Error(said)
	}
	s.setUp(ask, name)
	s.consoles(ask, name)
	s.many(ask, name)
	s.captures(ask, name)
	s.measures(ask, name)
	s.applies(ask, name)
	s.hangs(ask, name)
	s.killed(ask, service, name)
	s.lab(0, "down", name)
	for _, k := range []string{"m1", "m2"} {
		s.nothing(s.servers[k].Process.Pid)
	}
	s.nothing(s.hub)
}

// measures measures over the link between the machines what it is set to.
func (s *site) measures(ask func(path string, body, to any) string, name string) {
	s.t.Helper()
	set := func(what string, value any) {
		s.t.Helper()
		var is struct{ A string }
		if said := ask("labs/"+name+"/links:set", map[string]any{"link": "s1 s2", what: value}, &is); is.A == "" {
			s.t.Fatal(said)
		}
	}
	var iperf struct {
		ReceivedMbit float64 `json:"received_mbit"`
	}
	set("rate_mbit", 20)
	for _, pair := range [][2]string{{"h1", "h2"}, {"h2", "h1"}} {
		said := ask("labs/"+name+"/iperf", map[string]any{"from": pair[0], "to": pair[1], "seconds": 1}, &iperf)
		if iperf.ReceivedMbit <= 0 || iperf.ReceivedMbit > 40 {
			s.t.Errorf("at 20 Mbit/s: %s", said)
		}
	}
	if said := ask("labs/"+name+"/iperf", map[string]any{"from": "h1", "to": "h9"}, nil); !strings.Contains(said, "no host") {
		s.t.Error(said)
	}
	set("rate_mbit", 0)
	var ping struct {
		Received int
		MinMs    float64 `json:"min_ms"`
	}
	set("delay_ms", 30)
	if said := ask("labs/"+name+"/ping", map[string]any{"from": "h2", "to": "h1"}, &ping); ping.MinMs < 60 {
		s.t.Errorf("after 30 ms each way: %s", said)
	}
	set("delay_ms", 0)
	set("silent", true)
	if said := ask("labs/"+name+"/ping", map[string]any{"from": "h1", "to": "h2", "count": 1}, &ping); ping.Received > 0 {
		s.t.Errorf("silent: %s", said)
	}
	set("silent", false)
	set("loss_percent", 100)
	if said := ask("labs/"+name+"/ping", map[string]any{"from": "h1", "to": "h2", "count": 1}, &ping); ping.Received > 0 {
		s.t.Errorf("at a loss of 100 %%: %s", said)
	}
	set("loss_percent", 0)

	var matrix struct {
		Flows []struct {
			From, Error    string
			Sent, Received int
		}
	}
	set("delay_ms", 20)
	said := ask("labs/"+name+"/traffic", map[string]any{"seconds": 1, "flows": []map[string]any{
		{"from": "h1", "to": "h2"}, {"from": "h2", "to": "h1"}, {"from": "v2", "to": "v1"}, {"from": "h1", "to": "h9"},
	}}, &matrix)
	for i, f := range matrix.Flows {
		switch i {
		case 3:
			if !strings.Contains(f.Error, "no host") {
				s.t.Error(said)
			}
		default:
			if f.Error != "" || f.Sent < 50 || f.Received < f.Sent/2 {
				s.t.Error(said)
			}
		}
	}
	if len(matrix.Flows) != 4 {
		s.t.Error(said)
	}
	var one struct { // the machines of this test have one clock
		Least float64 `json:"min_ms"`
		Doubt float64 `json:"clock_error_ms"`
	}
	if s.labJSON(&one, "traffic", "h1", "h2", "--name", name, "--rate", "100"); one.Doubt <= 0 || one.Least < 20-one.Doubt {
		s.t.Errorf("%+v", one)
	}
	set("delay_ms", 0)

	var use struct {
		Processors int
		Memory     string
		Nodes      []struct {
			Node      string
			Processes int
		}
		Shared struct {
			Processes  int
			CPUSeconds float64 `json:"cpu_seconds"`
		}
	}
	said = ask("labs/"+name+"/usage", nil, &use)
	if len(use.Nodes) != 4 || use.Nodes[1].Node != "h2" || use.Shared.Processes != 4 || use.Shared.CPUSeconds <= 0 || use.Processors == 0 || use.Memory == "" {
		s.t.Error(said)
	}
}

// applies changes the lab by the service.
func (s *site) applies(ask func(path string, body, to any) string, name string) {
	s.t.Helper()
	var was, is struct{ Revision, File string }
	ask("labs/"+name, nil, &was)
	file := strings.Replace(was.File, "  - {name: h1,", "  - {name: h3, switch: s2}\n  - {name: h1,", 1)
	var d struct {
		Added []string
		Job   string
	}
	if said := ask("labs:apply", map[string]any{"lab": name, "file": file, "dry_run": true}, &d); len(d.Added) != 1 || d.Added[0] != "host h3" || d.Job != "" {
		s.t.Error(said)
	}
	if said := ask("labs:apply", map[string]any{"lab": name, "file": file, "made_from": "another"}, nil); !strings.Contains(said, "changed meanwhile") {
		s.t.Error(said)
	}
	ask("labs:apply", map[string]any{"lab": name, "file": file, "made_from": was.Revision}, &d)
	if job := jobDone(ask, d.Job); !job.Done || job.Error != "" {
		s.t.Fatalf("%+v", job)
	}
	if ask("labs/"+name, nil, &is); is.Revision == was.Revision || is.File != file {
		s.t.Errorf("%+v", is)
	}
	var ping struct{ Received int }
	if said := ask("labs/"+name+"/ping", map[string]string{"from": "h1", "to": "h3"}, &ping); ping.Received == 0 {
		s.t.Error(said)
	}
}

// setUp has the service set the nodes of the lab up, over ssh.
func (s *site) setUp(ask func(path string, body, to any) string, name string) {
	s.t.Helper()
	var begun struct{ Job string }
	said := ask("labs/"+name+":setup", map[string]any{}, &begun)
	is := jobDone(ask, begun.Job)
	if !is.Done || is.Error != "1 of 3 nodes are not set up" || len(is.Steps) != 3 {
		s.t.Fatalf("%s: %+v", said, is)
	}
	for i, want := range []step{{"s1", "done", "machine m1", "bridge of " + name + "-m1\n"}, {"h1", "done", "machine m1", "of " + name + "-m1 is  set up\n"}} {
		if is.Steps[i] != want {
			s.t.Errorf("%+v; want %+v", is.Steps[i], want)
		}
	}
	if h2 := is.Steps[2]; h2.State != "failed" || !strings.Contains(h2.Text, "no disk") {
		s.t.Errorf("%+v", h2)
	}
	if said := ask("labs/"+name+":setup", map[string]any{"nodes": []string{"v1"}}, nil); !strings.Contains(said, `no x-setup of node`) {
		s.t.Error(said)
	}
}

type step struct{ Node, State, Text, Output string }

type jobState struct {
	Done  bool
	Error string
	Steps []step
}

// jobDone returns a job of the service that has ended, or is not done in time.
func jobDone(ask func(path string, body, to any) string, id string) (is jobState) {
	for end := time.Now().Add(testwait.Limit); !is.Done && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		is = jobState{}
		ask("jobs/"+id, nil, &is)
	}
	return is
}

// serve starts weft lab serve where weft is called. What it returns asks a path, with a body if there is one.
func (s *site) serve(args ...string) (func(path string, body, to any) string, *exec.Cmd) {
	s.t.Helper()
	socket := s.path("lab.sock")
	enter := []string{"-t", fmt.Sprint(s.hub), "-n", "-m", "--"}
	cmd := exec.Command("nsenter", append(append(enter, s.weft, "lab", "serve", "--socket", socket), args...)...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if cmd.ProcessState != nil { // a test has killed it
			return
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("weft lab serve: %v", err)
		}
	})
	return func(path string, body, to any) string {
		s.t.Helper()
		curl := []string{"-s", "--retry", "20", "--retry-connrefused", "--retry-all-errors", "--retry-delay", "1", "--unix-socket", socket, "http://lab/v1/lab/" + path}
		if body != nil {
			b, err := json.Marshal(body)
			if err != nil {
				s.t.Fatal(err)
			}
			curl = append(curl, "-d", string(b))
		}
		start := time.Now()
		out, err := exec.CommandContext(s.t.Context(), "curl", curl...).CombinedOutput()
		s.t.Logf("%.1f s: %s %v", time.Since(start).Seconds(), path, body)
		if err != nil {
			s.t.Fatalf("%s: %v: %s", path, err, out)
		}
		if to != nil {
			if err := json.Unmarshal(out, to); err != nil {
				s.t.Fatalf("%s: %v: %s", path, err, out)
			}
		}
		return string(out)
	}, cmd
}
