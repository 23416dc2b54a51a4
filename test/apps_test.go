package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"
)

// TestApps: a stage and an observer in Python, over every transport, attached
// to another worker each time: that of the switches, that of the next stage,
// and one that has nothing to do with packets.
func TestApps(t *testing.T) {
	t.Parallel()
	f := newFaults(t)
	for _, c := range []struct{ transport, scheme, worker, watched string }{
		{"rest", "http", "southbound", "north"},
		{"ws", "ws", "routing", "southbound"},
		{"grpc", "grpc", "north", "routing"},
	} {
		t.Run(c.transport, func(t *testing.T) {
			t.Parallel()
			a := &appsTest{t: t, deployment: f.deploy(t, appsPlan("hold", freeAddress(t)))}
			a.url = c.scheme + "://" + a.address(c.worker)
			blocker := a.python(filepath.Join(sdk, "examples/blocker.py"), a.url)
			watcher := a.python(a.write("watcher.py", watcherScript), c.scheme+"://"+a.address(c.watched))
			a.attached("blocker", "stage", c.transport, c.worker)
			a.attached("watcher", "observer", c.transport, c.watched)
			l := a.network("linear:2")

			a.expired(l)
			if out := a.connect(l, 24, patience); !strings.Contains(out, "refused") {
				t.Errorf("port 24 was not reached: %q", out)
			}
			a.expired(l)
			if out := a.connect(l, 23, 2*time.Second); strings.Contains(out, "refused") {
				t.Errorf("port 23 was reached: %q", out)
			}
			eventually(t, "the app's flow entry is on a switch", func() bool {
				return present(t, l, "s1", "tp_dst=23") > 0 || present(t, l, "s2", "tp_dst=23") > 0
			})
			var b listedApp
			eventually(t, "the blocker's figures", func() bool { // a busy worker may not tell them at once
				b = a.app("blocker")
				return b.Answered > 0 && b.Skipped > 0
			})
			if b.Timeouts != 0 {
				t.Errorf("the blocker is said to be %+v", b)
			}
			eventually(t, "the observer has seen it", func() bool { return strings.Contains(watcher.String(), "tcp_dst 23") })
			a.calls()

			blocker.kill()
			a.absent("blocker")
			a.expired(l)
			gate := filepath.Join(a.dir, "gate")
			blocker = a.python(a.write("gated.py", gatedScript), gate, filepath.Join(sdk, "examples/blocker.py"), a.url)
			eventually(t, "Python ready", func() bool { return strings.Contains(blocker.String(), "ready") })
			held := a.pinging(l, patience)
			eventually(t, "packets held", func() bool { return a.sum("weft_deploy_packets_waiting") > 0 })
			time.Sleep(time.Second)
			a.write("gate", "")
			if r := <-held; r.Lost() > 0 || r.Max < 500 { // what was seen to wait may be another packet than ours, and ours a little younger
				t.Errorf("held while the app was absent: %d of %d lost, after %v ms; want them later, and none lost", r.Lost(), r.Sent, r.Max)
			}
			a.attached("blocker", "stage", c.transport, c.worker)

			a.apply(appsPlan("skip", a.address("southbound")))
			blocker.kill()
			a.absent("blocker")
			a.expired(l)
			if r := <-a.pinging(l, patience); r.Lost() > 0 {
				t.Errorf("skipped while the app was absent: %d of %d lost", r.Lost(), r.Sent)
			}
			a.counted("weft_deploy_app_skipped_total")

			a.apply(appsPlan("drop", a.address("southbound")))
			a.expired(l)
			if r := <-a.pinging(l, time.Second); r.Lost() != r.Sent {
				t.Errorf("to be dropped while the app was absent: %d of %d lost", r.Lost(), r.Sent)
			}
			a.counted(`reason="app_absent"`)
		})
	}
}

// appsPlan is a plan with a stage that is an app, and a fixed address to which
// apps can attach. Routes soon expire, so that packets come to the controller.
func appsPlan(absent, listen string) string {
	return fmt.Sprintf(`name: apps
pipeline: [discovery, hosts, blocker, forwarding]
apps:
  blocker: {absent: %s, timeout: 10s, may: [add_flow, packet_out]}
workers:
  southbound: {services: [southbound, discovery, hosts], listen: %q}
  routing: {services: [paths, forwarding]}
  north: {services: [flowrules, stats, gateway]}
config:
  forwarding: {idle_timeout: 2s}
`, absent, listen)
}

// sdk is the Python package's folder.
const sdk = "../sdk/python"

const watcherScript = `import sys
import weft

app = weft.Observer("watcher")

@app.packet
def watch(packet):
    print(" ".join(f"{k} {v}" for k, v in packet.fields.items()), flush=True)

app.run(sys.argv[1])
`

const callsScript = `import json
import sys
import weft

with weft.connect(sys.argv[1]) as controller:
    print(json.dumps(controller.call("hosts.ListHosts")))
`

// gatedScript runs another once there is a file: Python takes long to start.
const gatedScript = `import os
import runpy
import sys
import time
import grpc
import websocket
import weft

print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0])
`

// appsTest is a controller with apps.
type appsTest struct {
	*deployment
	t   *testing.T
	url string
}

// script is a Python script at work.
type script struct {
	cmd   *exec.Cmd
	ended chan struct{}
	mu    sync.Mutex // guards said
	said  bytes.Buffer
}

func (s *script) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.Write(b)
}

// String returns what the script has said so far.
func (s *script) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

func (s *script) kill() {
	_ = s.cmd.Process.Kill() // or it has ended
	<-s.ended
}

// python starts a script, which ends with the test.
func (a *appsTest) python(args ...string) *script {
	a.t.Helper()
	s := &script{cmd: exec.Command(interpreter(a.t), args...), ended: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(sdk, "src"), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1")
	s.cmd.Stdout, s.cmd.Stderr = s, s
	if err := s.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	go func() { _ = s.cmd.Wait(); close(s.ended) }() // it is killed, or the test looks at what it said
	a.t.Cleanup(func() {
		s.kill()
		if a.t.Failed() {
			text := s.String()
			a.t.Logf("%s said:\n%s", strings.Join(args, " "), text[max(0, len(text)-2000):])
		}
	})
	return s
}

// interpreter returns a Python that has what the package's transports need.
func interpreter(t *testing.T) string {
	t.Helper()
	var said []byte
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		out, err := exec.Command(name, "-c", "import grpc, google.protobuf, websocket").CombinedOutput()
		if err == nil {
			return name
		}
		said = append(said, out...)
	}
	t.Fatalf("no Python with grpcio, protobuf and websocket-client; run make setup\n%s", said)
	return ""
}

// address returns where a worker listens.
func (a *appsTest) address(worker string) string {
	a.t.Helper()
	m, err := a.workers(context.Background())
	if err != nil {
		a.t.Fatal(err)
	}
	for _, w := range m.Workers {
		if w.Instance == worker {
			return w.Addresses["rest"]
		}
	}
	a.t.Fatalf("there is no worker %s", worker)
	return ""
}

// listedApp is an app as weft get apps tells it.
type listedApp struct {
	Name, State, Kind, Worker, Transport          string
	Packets, Answered, Timeouts, Dropped, Skipped uint64
}

// app returns what weft get apps says of an app.
func (a *appsTest) app(name string) listedApp {
	a.t.Helper()
	out, err := a.command(context.Background(), "get", "apps", "-o", "json")
	var m struct{ Apps []listedApp }
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	for _, x := range m.Apps {
		if x.Name == name {
			return x
		}
	}
	return listedApp{}
}

func (a *appsTest) attached(name, kind, transport, worker string) {
	a.t.Helper()
	eventually(a.t, "app "+name+" attached to "+worker+" by "+transport, func() bool {
		x := a.app(name)
		return x.State == "attached" && x.Kind == kind && x.Transport == transport && x.Worker == worker
	})
}

func (a *appsTest) absent(name string) {
	a.t.Helper()
	eventually(a.t, "app "+name+" absent", func() bool { return a.app(name).State == "absent" })
}

// apply brings another plan into force and waits until all have carried it out.
func (a *appsTest) apply(text string) {
	a.t.Helper()
	if _, err := a.command(context.Background(), "apply", a.write("next.yaml", text)); err != nil {
		a.t.Fatal(err)
	}
	a.allUp()
}

// expired waits until no route is programmed, on any switch: the next packet
// comes to the controller.
func (a *appsTest) expired(l *lab.Lab) {
	a.t.Helper()
	eventually(a.t, "all routes expired", func() bool {
		m, err := api.NewForwardingClient(a.conn).ListRoutes(context.Background(), &api.ListRoutesRequest{})
		return err == nil && len(m.GetRoutes()) == 0 && present(a.t, l, "s1", "idle_timeout=2,")+present(a.t, l, "s2", "idle_timeout=2,") == 0
	})
}

// connect has h1 connect to a port of h2 on which nobody listens, and returns
// what became of it within a time.
func (a *appsTest) connect(l *lab.Lab, port int, within time.Duration) string {
	a.t.Helper()
	h2, err := l.Host("h2")
	if err != nil {
		a.t.Fatal(err)
	}
	out, err := l.Exec(context.Background(), "h1", "timeout", fmt.Sprint(within.Seconds()), "bash", "-c", fmt.Sprintf("echo > /dev/tcp/%s/%d", h2.IPv4.Addr(), port))
	if err == nil {
		a.t.Errorf("somebody listens at port %d of h2", port)
	}
	return fmt.Sprint(out, err)
}

// pinging has h1 ping h2 once.
func (a *appsTest) pinging(l *lab.Lab, timeout time.Duration) <-chan traffic.PingResult {
	result := make(chan traffic.PingResult, 1)
	go func() {
		r, err := l.Ping(context.Background(), "h1", "h2", traffic.PingOptions{Count: 1, Timeout: timeout})
		if err != nil {
			a.t.Error(err)
		}
		result <- r
	}()
	return result
}

// counted waits until a figure in whose name there is a text says that
// something has been.
func (a *appsTest) counted(text string) {
	a.t.Helper()
	eventually(a.t, "something counted as "+text, func() bool { return a.sum(text) > 0 })
}

// sum adds up the figures in whose names there is a text, 0 if nobody tells them.
func (a *appsTest) sum(text string) (sum float64) {
	figures, err := a.figures()
	if err != nil {
		return 0
	}
	for name, v := range figures {
		if strings.Contains(name, text) {
			sum += v
		}
	}
	return sum
}

// calls has a client that attaches to nothing call a method of a service, and
// be told of the two hosts.
func (a *appsTest) calls() {
	a.t.Helper()
	s := a.python(a.write("calls.py", callsScript), a.url)
	select {
	case <-s.ended:
	case <-time.After(testwait.Limit):
		a.t.Fatal("the call does not return")
	}
	var m struct{ Hosts []struct{ MAC string } }
	if err := json.Unmarshal([]byte(s.String()), &m); err != nil || len(m.Hosts) != 2 {
		a.t.Errorf("hosts.ListHosts returns %d hosts (%v); want 2: %s", len(m.Hosts), err, s.String())
	}
}
