package deploy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/port"
)

// appsCluster is two processes, a with the switches and the first stage, b with
// the last, and an app judge between them. Every stage leaves its mark.
type appsCluster struct {
	*cluster
	pipe    weft.Pipeline
	marks   chan string
	address map[string]string // of each process
}

func appsPlan(absent string) string {
	return fmt.Sprintf(`name: apps
events: grpc
pipeline: [first, judge, last]
apps: {judge: {absent: %s, timeout: 200ms, may: [packet_out]}}
workers:
  a: {services: [southbound, first]}
  b: {services: [last, hosts]}
`, absent)
}

func newAppsCluster(t *testing.T, absent string) *appsCluster {
	t.Helper()
	mark := func(port flow.Port, v flow.Verdict) func(*actor) {
		return func(p *actor) {
			weft.Stage(p.env, func(sw flow.DPID) weft.StageFunc {
				return func(_ *flow.PacketIn, d *flow.Decision) flow.Verdict {
					d.PacketOut(sw, flow.PacketOut{InPort: flow.PortController, Actions: []flow.Action{flow.Output(port)}})
					return v
				}
			})
		}
	}
	x := &appsCluster{marks: make(chan string, 10_000), address: map[string]string{}}
	x.cluster = newCluster(t, []weft.Spec{
		{Name: "southbound", Doc: "holds switches", Pipeline: true}, {Name: "first", Doc: "is a stage", Stage: true},
		{Name: "last", Doc: "is a stage", Stage: true}, {Name: "hosts", Doc: "knows hosts", Serves: weft.Methods(api.ListHosts)},
	}, map[string]func(*actor){
		"first": mark(1, flow.Next), "last": mark(3, flow.Done),
		"hosts": func(p *actor) {
			weft.Handle(p.env, api.ListHosts, func(context.Context, *api.ListHostsRequest) (*api.ListHostsResponse, error) {
				return &api.ListHostsResponse{Hosts: []*api.Host{{Mac: "02:00:00:00:00:01"}}}, nil
			})
		},
	})
	x.apply(appsPlan(absent))
	for _, name := range []string{"a", "b"} {
		x.start(name, func(c *deploy.NodeConfig) {
			c.Listen = func(h transport.Handler) (map[string]string, io.Closer, error) {
				p := x.process(name)
				out, err := p.node.Apps(nil)
				if err != nil {
					return nil, nil, err
				}
				l, err := port.Listen("127.0.0.1:0", port.Config{Handler: gatedHandler{h, p.gate}, HTTP: out.HTTP(), GRPC: out.Register})
				if err != nil {
					return nil, nil, err
				}
				x.mu.Lock()
				x.address[name] = l.Address()
				x.mu.Unlock()
				p.gate.listener = l
				return map[string]string{"grpc": l.Address(), "ws": l.Address(), "rest": l.Address()}, l, nil
			}
		})
	}
	x.settled()
	x.pipe = weft.OpenPipeline(x.run("southbound").env, 7, func(d *flow.Decision) {
		if d != nil {
			x.marks <- marks(d)
		}
	})
	return x
}

// marks are the ports of a decision's packet-outs: which stages have seen it.
func marks(d *flow.Decision) string {
	var list []string
	for i := range d.Outs {
		for _, a := range d.Outs[i].Actions {
			list = append(list, fmt.Sprint(a.Arg))
		}
	}
	return strings.Join(list, " ")
}

// send has a packet come in.
func (x *appsCluster) send() {
	frame := slices.Concat([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x12, 0x34}, make([]byte, 50))
	in := &flow.PacketIn{Switch: 7, Time: time.Now().UnixNano(), BufferID: flow.BufferNone, TotalLen: 64, Data: frame}
	in.Key.InPort = 3
	var d flow.Decision
	if v := x.pipe.Packet(in, &d); v != flow.Away {
		x.t.Errorf("verdict %d; want that the packet is away", v)
	}
	x.pipe.Flush()
}

// wants waits for the marks of the next packet that has been decided on.
func (x *appsCluster) wants(what, want string) {
	x.t.Helper()
	select {
	case got := <-x.marks:
		if got != want {
			x.t.Errorf("%s: seen by %q; want %q", what, got, want)
		}
	case <-time.After(testwait.Limit):
		x.t.Errorf("%s: no decision", what)
	}
}

// post makes a request of somebody outside and returns the response.
func (x *appsCluster) post(process, path string, body string) (status int, text string) {
	x.t.Helper()
	x.mu.Lock()
	url := "http://" + x.address[process] + path
	x.mu.Unlock()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		x.t.Fatal(err)
	}
	return resp.StatusCode, b.String()
}

// judge is an app, over REST.
type judge struct {
	x       *appsCluster
	server  *httptest.Server
	verdict atomic.Value // string
	delay   atomic.Int64 // ns, of the next answer only
	seen    atomic.Int64 // packets
}

// attach starts an app and attaches it to a process.
func (x *appsCluster) attach(process, name, kind string) *judge {
	x.t.Helper()
	j := &judge{x: x}
	j.verdict.Store("next")
	j.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &api.Packets{}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = protojson.Unmarshal(body, p)
		}
		if err != nil {
			x.t.Error(err)
		}
		j.seen.Add(int64(len(p.Packets)))
		time.Sleep(time.Duration(j.delay.Swap(0)))
		d := &api.Decisions{Id: p.Id}
		for range p.Packets {
			d.Decisions = append(d.Decisions, &api.Decision{Verdict: j.verdict.Load().(string), Operations: []*api.Operation{
				{Operation: &api.Operation_PacketOut{PacketOut: &api.PacketOut{Actions: []string{"output:2"}}}}}})
		}
		text, err := protojson.Marshal(d)
		if err != nil {
			x.t.Error(err)
		}
		w.Write(text)
	}))
	x.t.Cleanup(j.server.Close)
	if status, text := x.post(process, "/v1/apps", fmt.Sprintf(`{"name": %q, "kind": %q, "url": %q}`, name, kind, j.server.URL)); status != http.StatusOK {
		x.t.Fatalf("attach %s to %s: %d %s", name, process, status, text)
	}
	x.known(name, true)
	return j
}

// known waits until the process with the switches knows whether an app is there.
func (x *appsCluster) known(name string, there bool) {
	x.t.Helper()
	x.eventually(fmt.Sprintf("app %s is known to be attached: %v", name, there), func() bool {
		m, err := x.process("a").node.ListWorkers(context.Background(), &api.ListWorkersRequest{})
		return err == nil && there == slices.ContainsFunc(m.Workers, func(w *api.Worker) bool {
			return slices.ContainsFunc(w.Apps, func(a *api.App) bool { return a.Name == name })
		})
	})
}

// leave detaches an app.
func (j *judge) leave(process, name string) {
	j.x.t.Helper()
	j.x.mu.Lock()
	url := "http://" + j.x.address[process] + "/v1/apps/" + name
	j.x.mu.Unlock()
	req, err := http.NewRequest(http.MethodDelete, url, nil)
	if err != nil {
		j.x.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		j.x.t.Fatal(err)
	}
	resp.Body.Close()
	j.x.known(name, false)
}

// TestAppIsAStage: wherever it is attached, an app sees packets in its place of
// the pipeline, and decides.
func TestAppIsAStage(t *testing.T) {
	x := newAppsCluster(t, "hold")
	for _, process := range []string{"a", "b"} {
		j := x.attach(process, "judge", "stage")
		x.send()
		x.wants("next at "+process, "1 2 3")
		j.verdict.Store("drop")
		x.send()
		x.wants("drop at "+process, "1 2")
		j.verdict.Store("done")
		x.send()
		x.wants("done at "+process, "1 2")
		if n := x.process(process).metric(t, "weft_deploy_app_packets_total", "judge"); n != 3 {
			t.Errorf("%s has counted %v packets of the app; want 3", process, n)
		}
		j.leave(process, "judge")
	}
}

// TestAppAbsent: what becomes of packets whose app is absent, or late, is what
// the plan says.
func TestAppAbsent(t *testing.T) {
	for _, c := range []struct{ absent, alone string }{{"skip", "1 3"}, {"drop", "1"}} {
		t.Run(c.absent, func(t *testing.T) {
			x := newAppsCluster(t, c.absent)
			x.send()
			x.wants("absent", c.alone)
			for _, process := range []string{"a", "b"} {
				j := x.attach(process, "judge", "stage")
				j.delay.Store(int64(500 * time.Millisecond))
				x.send()
				x.wants("late at "+process, c.alone)
				x.send()
				x.wants("in time at "+process, "1 2 3")
				if n := x.process(process).metric(t, "weft_deploy_app_failures_total", "timeout"); n != 1 {
					t.Errorf("%s has counted %v timeouts; want 1", process, n)
				}
				j.verdict.Store("perhaps") // malformed: it is thrown out
				x.send()
				x.wants("malformed at "+process, c.alone)
				x.known("judge", false)
			}
			name, label := "weft_deploy_app_skipped_total", "judge"
			if c.absent == "drop" {
				name, label = "weft_deploy_packets_shed_total", "app_absent"
			}
			if n := x.process("a").metric(t, name, label) + x.process("b").metric(t, name, label); n != 5 {
				t.Errorf("%s is %v; want 5", name, n)
			}
		})
	}
	t.Run("hold", func(t *testing.T) {
		x := newAppsCluster(t, "hold")
		for range 5 {
			x.send()
		}
		x.eventually("packets held", func() bool { return x.process("a").metric(t, "weft_deploy_packets_waiting", "") == 5 })
		j := x.attach("b", "judge", "stage")
		for range 5 {
			x.wants("held", "1 2 3")
		}
		j.delay.Store(int64(500 * time.Millisecond))
		x.send()
		x.wants("late, and asked again", "1 2 3")
		x.apply(appsPlan("skip"))
		x.settled()
		j.leave("b", "judge")
		x.send()
		x.wants("absent by another plan", "1 3")
	})
}

// TestObserver: observers are sent copies wherever they are attached, and
// nobody waits for them.
func TestObserver(t *testing.T) {
	x := newAppsCluster(t, "skip")
	here, there := x.attach("a", "near", "observer"), x.attach("b", "far", "observer")
	here.delay.Store(int64(time.Second))
	for range 100 {
		x.send()
		x.wants("observed", "1 3")
	}
	x.eventually("copies of all packets with both observers", func() bool { return here.seen.Load() == 100 && there.seen.Load() == 100 })
	there.leave("b", "far")
	x.send()
	x.wants("observed by one", "1 3")
	x.eventually("copies of all packets with one observer", func() bool { return here.seen.Load() == 101 })
	if n := there.seen.Load(); n != 100 {
		t.Errorf("an observer that is gone was sent %d packets; want 100", n)
	}
}

// TestOutside: methods of services here and elsewhere are called at any
// process; apps without a place are refused.
func TestOutside(t *testing.T) {
	x := newAppsCluster(t, "skip")
	for _, process := range []string{"a", "b"} {
		status, text := x.post(process, "/v1/call/hosts.ListHosts", "")
		m := &api.ListHostsResponse{}
		if err := protojson.Unmarshal([]byte(text), m); err != nil || status != http.StatusOK || !proto.Equal(m, &api.ListHostsResponse{Hosts: []*api.Host{{Mac: "02:00:00:00:00:01"}}}) {
			t.Errorf("hosts.ListHosts at %s: %d %s", process, status, text)
		}
		for method, want := range map[string]int{"hosts.FindHost": http.StatusNotImplemented, "southbound.Apply": http.StatusNotImplemented} {
			if status, text := x.post(process, "/v1/call/"+method, ""); status != want {
				t.Errorf("%s at %s: %d %s; want %d", method, process, status, text, want)
			}
		}
	}
	for hello, want := range map[string]string{
		`{"name": "jury", "kind": "stage"`:     `plan apps has no stage jury; add it there`,
		`{"name": "first", "kind": "stage"`:    `a service of Weft's is called first`,
		`{"name": "judge", "kind": "observer"`: `in plan apps, judge is a stage`,
	} {
		if status, text := x.post("a", "/v1/apps", hello+`, "url": "http://127.0.0.1:1/"}`); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s; want 400, %s", hello, status, text, want)
		}
	}
	// What is between processes cannot be had by way of it.
	conn := x.process("a").node
	if _, err := conn.Call(context.Background(), "deploy.Outside", append([]byte{16}, "southbound.Apply"...)); err == nil || !strings.Contains(err.Error(), "not to be called from outside") {
		t.Errorf("an internal method as if from outside: %v", err)
	}
}
