//go:build long

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

	"weft/api"
)

// natsServer is one server of a NATS cluster, as the test binary of bus runs it.
type natsServer struct {
	Name   string
	Dir    string
	Port   int
	Route  int
	Routes []int

	program string
	cmd     *exec.Cmd
}

// natsCluster starts three servers and returns them and their addresses.
func (f *faults) natsCluster(t *testing.T) (servers []*natsServer, urls string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "nats")
	if out, err := exec.Command("go", "test", "-c", "-o", program, "weft/bus").CombinedOutput(); err != nil {
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
	s.cmd = exec.Command(s.program)
	s.cmd.Env = append(os.Environ(), "WEFT_BUS_TEST_NATS="+string(text))
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "server "+s.Name+" listens", func() bool { return listens("", fmt.Sprint("127.0.0.1:", s.Port)) })
}

func (s *natsServer) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// TestTrustReplicas is the part of TestTrust about replicas of the store, which
// takes a minute.
func TestTrustReplicas(t *testing.T) {
	f := &faults{dir: t.TempDir()}
	f.weft = f.build(t, "weft", ".")
	trustReplicas(t, f)
}

// trustReplicas kills and wipes each of three servers of the store in turn: the
// operator's writes go on, no confirmed entry is lost, and the southbound that
// has a standby stays master. Killed itself, it is replaced.
func trustReplicas(t *testing.T, f *faults) {
	servers, urls := f.natsCluster(t)
	second := freeAddress(t)
	d := f.deploy(t, fmt.Sprintf(`name: replicated
bus: {url: %q, replicas: 3}
workers:
  southbound:
    services: [southbound]
    standby: 1
    settings: {southbound: {standby_listen: ["tcp:%s"]}}
  rest: {services: [discovery, hosts, paths, forwarding, flowrules, stats, gateway]}
`, urls, second))
	d.stored(3)
	l := d.quiet("linear:2", d.openflow, second)
	d.heldReady(2)
	flows := api.NewFlowrulesClient(d.conn)
	sw := l.Topology().Switches[0].DPID.String()
	written := 0
	write := func() {
		t.Helper()
		written++
		eventually(t, 40*time.Second, "an entry of the operator's confirmed", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			r, err := flows.AddFlows(ctx, &api.AddFlowsRequest{Flows: []*api.FlowEntry{{
				Dpid: sw, Priority: uint32(20000 + written), Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": fmt.Sprint("192.0.2.", written)},
			}}})
			return err == nil && r.Flows[0].State == "confirmed"
		})
	}
	write()
	epoch := d.figure(`weft_southbound_lease_epoch{process="southbound"}`)
	for _, s := range servers {
		s.kill()
		if err := os.RemoveAll(s.Dir); err != nil {
			t.Fatal(err)
		}
		write()
		s.start(t)
		d.stored(3)
		write()
	}
	d.role("southbound", "master")
	if now := d.figure(`weft_southbound_lease_epoch{process="southbound"}`); now != epoch {
		t.Errorf("the mastership has gone from epoch %v to %v", epoch, now)
	}
	if err := syscall.Kill(d.pids()["southbound"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.role("southbound-standby", "master")
	write()
	m, err := flows.ListFlows(t.Context(), &api.ListFlowsRequest{Dpid: sw})
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, e := range m.Flows {
		if strings.HasPrefix(e.Flow.Match["ipv4_dst"], "192.0.2.") && e.State == "confirmed" {
			kept++
		}
	}
	if kept != written {
		t.Errorf("%d of the operator's %d entries are confirmed in the end", kept, written)
	}
}

// stored waits until every bucket is kept on so many servers, all of them up,
// and checks that health tells so, too.
func (d *deployment) stored(servers uint32) {
	d.t.Helper()
	var last *api.StoreState
	eventually(d.t, 60*time.Second, "the store kept on all servers", func() bool {
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
