package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/test/testbed"
)

// natsServer is one server of a NATS cluster, as the test binary of bus runs it.
type natsServer struct {
	Name   string
	Dir    string
	Port   int
	Route  int
	Routes []int

	program string
	process *testbed.Process
}

// natsCluster starts three servers and returns them and their addresses.
func (f *faults) natsCluster(t *testing.T) (servers []*natsServer, urls string) {
	t.Helper()
	dir := openDir(t)
	program := filepath.Join(dir, "nats")
	if out, err := exec.Command("go", "test", "-c", "-o", program, "github.com/weft-sdn/weft/bus").CombinedOutput(); err != nil {
		t.Fatalf("build of the servers: %v\n%s", err, out)
	}
	port := func() int {
		address, err := net.ResolveTCPAddr("tcp", freeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		return address.Port
	}
	routes := []int{port(), port(), port()}
	var list []string
	for i, route := range routes {
		s := &natsServer{Name: fmt.Sprint("n", i), Dir: filepath.Join(dir, fmt.Sprint(i)), Port: port(), Route: route, Routes: routes, program: program}
		s.start(t)
		t.Cleanup(s.kill)
		servers, list = append(servers, s), append(list, fmt.Sprint("nats://127.0.0.1:", s.Port))
	}
	return servers, strings.Join(list, ",")
}

func (s *natsServer) start(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if s.process, err = testbed.StartProcess(s.Name, -1, "env", "WEFT_BUS_TEST_NATS="+string(text), s.program); err != nil {
		t.Fatal(err)
	}
	eventually(t, "server "+s.Name+" listens", func() bool { return listens("", fmt.Sprint("127.0.0.1:", s.Port)) })
}

func (s *natsServer) kill() {
	if s.process != nil {
		_ = syscall.Kill(s.process.PID(), syscall.SIGKILL) // that it has ended already is all right
		s.process.Stop()
		s.process = nil
	}
}

// replicated is a controller over three servers of the store, whose southbound
// has a standby, and a network of two switches. An election takes longer than the
// lease lasts; a machine that is busy does not end it.
type replicated struct {
	*deployment
	servers []*natsServer
	flows   api.FlowrulesClient
	sw      string // the switch with the operator's entries
	written int
	listens map[string]string // the address for switches of each southbound
	master  string            // process that was master of the switches at first
	epoch   float64
}

func (f *faults) replicated(t *testing.T) *replicated {
	servers, urls := f.natsCluster(t)
	second := freeAddress(t)
	d := f.deploy(t, fmt.Sprintf(`name: replicated
bus: {url: %q, replicas: 3}
workers:
  southbound:
    services: [southbound]
    standby: 1
    settings: {southbound: {standby_listen: ["tcp:%s"], lease_time: 3s, lease_renew: 500ms}}
  rest: {services: [discovery, hosts, paths, forwarding, flowrules, stats, gateway]}
`, urls, second))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(d.logs())
		}
	})
	d.stored(3)
	l := d.quiet("linear:2", d.openflow, second)
	d.heldReady(2)
	r := &replicated{deployment: d, servers: servers, flows: api.NewFlowrulesClient(d.conn), sw: l.Topology().Switches[0].DPID.String()}
	r.listens = map[string]string{"southbound": d.openflow, "southbound-standby": second}
	r.master, r.epoch = r.mastered()
	return r
}

// mastered returns the process that is master of the switches, and its epoch.
func (r *replicated) mastered() (process string, epoch float64) {
	r.t.Helper()
	eventually(r.t, "a master of the switches", func() bool {
		figures, err := r.figures()
		for name := range r.listens {
			label := fmt.Sprintf("{process=%q}", name)
			epoch = max(epoch, figures["weft_southbound_lease_epoch"+label])
			if figures["weft_southbound_lease_held"+label] == 1 {
				process = name
			}
		}
		return err == nil && process != ""
	})
	return process, epoch
}

// write adds another entry of the operator's, and waits until it is confirmed.
func (r *replicated) write() {
	r.t.Helper()
	r.written++
	eventually(r.t, "an entry of the operator's confirmed", func() bool {
		ctx, cancel := context.WithTimeout(r.t.Context(), 15*time.Second)
		defer cancel()
		m, err := r.flows.AddFlows(ctx, &api.AddFlowsRequest{Flows: []*api.FlowEntry{{
			Dpid: r.sw, Priority: uint32(20000 + r.written), Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": fmt.Sprint("192.0.2.", r.written)},
		}}})
		return err == nil && m.Flows[0].State == "confirmed"
	})
}

// stays checks that the mastership is where it was at first.
func (r *replicated) stays() {
	r.t.Helper()
	if master, epoch := r.mastered(); master != r.master || epoch != r.epoch {
		r.t.Errorf("%s is master under epoch %v; at first it was %s under %v", master, epoch, r.master, r.epoch)
	}
}

// kept checks that all entries that were written are confirmed.
func (r *replicated) kept() {
	r.t.Helper()
	m, err := r.flows.ListFlows(r.t.Context(), &api.ListFlowsRequest{Dpid: r.sw})
	if err != nil {
		r.t.Fatal(err)
	}
	n := 0
	for _, e := range m.Flows {
		if strings.HasPrefix(e.Flow.Match["ipv4_dst"], "192.0.2.") && e.State == "confirmed" {
			n++
		}
	}
	if n != r.written {
		r.t.Errorf("%d of the operator's %d entries are confirmed in the end", n, r.written)
	}
}

// wiped kills a server under load, wipes it and starts it again: the operator's
// writes go on, no packet-in is lost or shed, and the mastership stays.
func (r *replicated) wiped(s *natsServer) {
	r.t.Helper()
	source := r.connectTo(r.listens[r.master])
	defer source.Close()
	load := r.load(source)
	time.Sleep(300 * time.Millisecond)
	s.kill()
	if err := os.RemoveAll(s.Dir); err != nil {
		r.t.Fatal(err)
	}
	r.write()
	s.start(r.t)
	time.Sleep(time.Second)
	a := load.end()
	r.stored(3)
	r.write()
	r.t.Logf("server %s killed and wiped: %d packet-ins, %d answered, %d shed%s, the longest after %v", s.Name, len(a.messages), a.answered, a.shed, a.reasons, a.longest().Round(time.Millisecond))
	if a.shed > 0 {
		r.t.Errorf("%d packet-ins were shed while a server of the store was away:%s", a.shed, a.reasons)
	}
	r.stays()
}

// trustReplica has one of the three servers killed and wiped.
func trustReplica(t *testing.T, f *faults) {
	r := f.replicated(t)
	r.write()
	r.wiped(r.servers[0])
	r.kept()
}

// stored waits until every bucket is kept on so many servers, all of them up,
// and checks that health tells so, too.
func (d *deployment) stored(servers uint32) {
	d.t.Helper()
	var last *api.StoreState
	eventually(d.t, "the store kept on all servers", func() bool {
		m, err := d.workers(context.Background())
		if err != nil {
			return false
		}
		last = m.Store
		return last.GetServers() == servers && last.GetReplicas() == servers && last.GetQuorum()
	})
	out, err := d.command(context.Background(), "get", "health", "-o", "json")
	var health struct {
		Store struct {
			Servers, Replicas uint32
			Quorum            bool
		}
	}
	if jsonErr := json.Unmarshal(out, &health); err == nil && (jsonErr != nil || health.Store.Servers != servers) {
		d.t.Errorf("weft get health: %s; weft get workers: %v", out, last)
	}
}
