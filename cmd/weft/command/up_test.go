package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

// running is a controller that runs within the test.
type running struct {
	openflow string
	out      syncBuffer
	stop     func() error
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// startUp runs weft up and points the commands to it.
func startUp(t *testing.T, o run.UpOptions) *running {
	t.Helper()
	r := &running{openflow: freeAddress(t)}
	o.Listen, o.HTTP, o.LogLevel = []string{r.openflow}, freeAddress(t), "warn"
	if o.DataDir == "" {
		o.DataDir = t.TempDir()
	}
	cmd := &cobra.Command{Use: "up"}
	cmd.SetOut(&r.out)
	cmd.SetErr(io.Discard)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run.Up(ctx, cmd, &o) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(testwait.Limit):
			return fmt.Errorf("weft up does not stop")
		}
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	testwait.Until(t, "the controller is up", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("weft up: %v", err)
		default:
		}
		return strings.Contains(r.out.String(), " is up; OpenFlow on tcp:"+r.openflow+"; northbound on http://"+o.HTTP+"; state in "+o.DataDir)
	})
	t.Setenv("WEFT_SERVER", "http://"+o.HTTP)
	return r
}

// connect makes three switches in a ring, with a host at port 9 of each, and
// connects them; the hosts are h1, h2 and h3, of 10.0.0.1 to 10.0.0.3.
func connect(t *testing.T, r *running) (*oftest.Network, []*oftest.Host) {
	t.Helper()
	n := oftest.NewNetwork(time.Now)
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	t.Cleanup(func() { cancel(); wait.Wait() })
	var hosts []*oftest.Host
	for i := range flow.DPID(3) {
		n.Add(oftest.Config{DPID: i + 1, Ports: 9, Now: time.Now()})
		hosts = append(hosts, n.Host(flow.Location{Switch: i + 1, Port: 9}, nil))
	}
	for i := range flow.DPID(3) {
		n.Link(flow.Location{Switch: i + 1, Port: 1}, flow.Location{Switch: (i+1)%3 + 1, Port: 2})
	}
	for i := range flow.DPID(3) {
		wait.Go(func() { _ = n.Device(i+1).Dial(ctx, "tcp", r.openflow) }) // it ends with the test
	}
	return n, hosts
}

func mac(i byte) flow.MAC        { return flow.MAC{2, 0, 0, 0, 0, i} }
func address4(i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, i}) }

// announce is a gratuitous ARP of host i.
func announce(i byte) []byte {
	return packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: mac(i), SenderIP: address4(i), TargetIP: address4(i)})
}

func echo(from, to byte) []byte {
	return packet.AppendICMPEcho(nil, packet.Ether{Src: mac(from), Dst: mac(to)}, packet.IP{Src: address4(from), Dst: address4(to)}, packet.Echo{ID: 1})
}

// must runs a command line that is to succeed, and returns what it prints.
func must(t *testing.T, line string) string {
	t.Helper()
	status, out, errs := weftCommand(strings.Fields(line)...)
	if status != 0 {
		t.Fatalf("weft %s: status %d, %s%s", line, status, out, errs)
	}
	return out
}

// The controller and the commands, with switches whose tables forward: what the
// commands show is what the switches have.
func TestUp(t *testing.T) {
	dir := t.TempDir()
	r := startUp(t, run.UpOptions{DataDir: dir})
	followed := make(chan string, 1)
	go func() {
		_, out, errs := weftCommand("events", "--subjects", "hosts.HostChanged", "-n", "2", "-o", "json")
		followed <- out + errs
	}()
	n, hosts := connect(t, r)
	testwait.Until(t, "three switches are connected", func() bool { return strings.Count(must(t, "get switches"), "connected") == 3 })
	testwait.Until(t, "six links are up", func() bool { return strings.Count(must(t, "get links"), " up ") == 6 })
	testwait.Until(t, "three ports are edges", func() bool { return strings.Count(must(t, "get ports"), "edge") >= 3 })
	testwait.Until(t, "two paths, the second of three hops", func() bool { // paths gathers what comes
		return regexp.MustCompile(`(?m)^2 +\d+ +3 `).MatchString(must(t, "path 1 2 -k 2 --disjoint"))
	})
	testwait.Until(t, "h1 and h3 are known", func() bool {
		hosts[0].Send(announce(1))
		hosts[2].Send(announce(3))
		out := must(t, "get hosts")
		return strings.Contains(out, "10.0.0.1") && strings.Contains(out, "10.0.0.3")
	})
	var last get.EventRecord
	for line := range strings.Lines(<-followed) {
		if err := json.Unmarshal([]byte(line), &last); err != nil || last.Subject != api.HostChangedEvent.Name {
			t.Errorf("event %q: %v", line, err)
		}
	}

	// Before a packet the trace ends at the controller, after it at h3.
	if status, _, errs := weftCommand("trace", "10.0.0.1", "10.0.0.3"); status != 1 || !strings.Contains(errs, "table miss of 1:") {
		t.Errorf("trace before: status %d, %s", status, errs)
	}
	hosts[2].Received()
	hosts[0].Send(echo(1, 3))
	testwait.Until(t, "the packet arrives", func() bool { return len(hosts[2].Received()) > 0 })
	testwait.Until(t, "the trace arrives", func() bool {
		status, out, _ := weftCommand("trace", "10.0.0.1", "10.0.0.3")
		return status == 0 && strings.Contains(out, "arrives at host 02:00:00:00:00:03")
	})

	// What weft get flows shows is what the switch has.
	must(t, "flow add --switch 2 --match eth_type=0x0800,ipv4_dst=10.9.0.0/16 --priority 50000 --action output:9")
	for _, dpid := range []flow.DPID{1, 2, 3} {
		testwait.Until(t, "weft get flows shows what switch "+dpid.String()+" has", func() bool {
			var m struct {
				Flows []struct {
					Flow struct{ Match map[string]string }
				}
			}
			if err := json.Unmarshal([]byte(must(t, "get flows -o json --switch "+dpid.String())), &m); err != nil {
				t.Fatal(err)
			}
			return len(n.Device(dpid).Flows()) == len(m.Flows)
		})
	}
	if out := must(t, "get flows --switch 2 --owner operator"); !strings.Contains(out, "eth_type=0x0800,ipv4_dst=10.9.0.0/16  output:9") || !strings.Contains(out, "confirmed") {
		t.Errorf("the entry that was added:\n%s", out)
	}
	if status, _, errs := weftCommand("flow", "add", "-s", "2", "-m", "in_port=3", "-a", "group:77"); status != 1 || !strings.Contains(errs, "1 of 1 entries failed") {
		t.Errorf("a group that is not there: status %d, %s", status, errs)
	}
	if out := must(t, "get flows -s 2 --owner operator"); !strings.Contains(out, "failed: not on the switch: ") {
		t.Errorf("the entry that was refused:\n%s", out)
	}
	must(t, "flow delete -s 2 -m in_port=3")
	for _, line := range []string{"get groups", "get paths", "get services", "get routes", "get sync", "get stats", "get stats tables", "get stats flows"} {
		must(t, line)
	}

	// One controller per directory.
	second := &cobra.Command{}
	second.SetErr(io.Discard)
	err := run.Up(t.Context(), second, &run.UpOptions{DataDir: dir, Listen: []string{freeAddress(t)}, HTTP: freeAddress(t), LogLevel: "error"})
	if err == nil || !strings.Contains(err.Error(), "is in use by process") {
		t.Errorf("a second controller in the same directory: %v", err)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}

	// The operator's entries outlast the controller.
	startUp(t, run.UpOptions{DataDir: dir})
	testwait.Until(t, "the entry is wanted again", func() bool {
		m, err := askFlows((&cli.Remote{Timeout: 5 * time.Second}), t)
		return err == nil && len(m.Flows) == 1 && m.Flows[0].Flow.Priority == 50000
	})
}

// askFlows returns the entries that the controller wants switches to have.
func askFlows(r *cli.Remote, t *testing.T) (*api.ListFlowsResponse, error) {
	c, done, err := r.Dial(&cobra.Command{})
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	return c.ListFlows(c.Ctx, &api.ListFlowsRequest{})
}

// A part of the services runs by itself, where it makes sense; calls of the
// rest say so.
func TestUpLearning(t *testing.T) {
	r := startUp(t, run.UpOptions{Services: []string{"southbound", "forwarding"}, Set: []string{"forwarding.mode=learning"}})
	n := oftest.NewNetwork(time.Now)
	n.Add(oftest.Config{DPID: 1, Ports: 4, Now: time.Now()})
	a, b := n.Host(flow.Location{Switch: 1, Port: 1}, nil), n.Host(flow.Location{Switch: 1, Port: 2}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go n.Device(1).Dial(ctx, "tcp", r.openflow)
	testwait.Until(t, "the switch has the table miss", func() bool { return len(n.Device(1).Flows()) == 1 })
	b.Send(announce(2))
	testwait.Until(t, "packets are carried", func() bool {
		a.Send(echo(1, 2))
		return len(b.Received()) > 0
	})
	if out := must(t, "get services"); strings.Contains(out, "discovery") || !strings.Contains(out, "gateway") {
		t.Errorf("services:\n%s", out)
	}
	if status, _, errs := weftCommand("get", "hosts"); status != 1 || !strings.Contains(errs, "service hosts does not run") {
		t.Errorf("get hosts: status %d, %s", status, errs)
	}
	for _, line := range []string{"get ports", "get flows"} { // what they can do without is left out
		must(t, line)
	}
}

func TestUpConfiguration(t *testing.T) {
	file := writeFile(t, "weft.yaml", "services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]\nforwarding:\n  mode: magic\n")
	for _, c := range []struct {
		o    run.UpOptions
		want string
	}{
		{run.UpOptions{Config: "/nowhere.yaml"}, "no such file"},
		{run.UpOptions{Config: file}, file + ":3: service forwarding: mode"},
		{run.UpOptions{Config: file, Set: []string{"forwarding.mode=proactive", "forwarding.x=1"}}, "--set forwarding.x=1: unknown key forwarding.x; allowed"},
		{run.UpOptions{Set: []string{"nonsense"}}, "want service.key=value"},
		{run.UpOptions{Set: []string{"southbound.echo_interval=often"}}, "want a duration"},
		{run.UpOptions{Services: []string{"nonsense"}}, "--services: unknown service \"nonsense\"; allowed: southbound"},
		{run.UpOptions{HTTP: "0.0.0.0:1"}, "is not a loopback address"},
		{run.UpOptions{DataDir: "/proc/nowhere"}, "name another with --data-dir"},
	} {
		c.o.LogLevel = "error"
		c.o.Listen = []string{"tcp:" + freeAddress(t)}
		if c.o.HTTP == "" {
			c.o.HTTP = freeAddress(t)
		}
		if c.o.DataDir == "" {
			c.o.DataDir = filepath.Join(t.TempDir(), "lib", "weft")
		}
		cmd := &cobra.Command{}
		cmd.SetErr(io.Discard)
		cmd.SetOut(io.Discard)
		if err := run.Up(t.Context(), cmd, &c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %q", c.o, err, c.want)
		}
		if _, err := os.Stat(filepath.Dir(c.o.DataDir)); !os.IsNotExist(err) && c.o.DataDir != "/proc/nowhere" {
			t.Errorf("%+v: refused, it leaves its data directory (%v)", c.o, err)
		}
	}
}

func TestListenAddresses(t *testing.T) {
	got, err := run.ListenAddresses([]string{"127.0.0.1:6653", "tcp:[::1]:6653", "unix:/run/x.sock", ":6633"})
	if want := "[tcp:127.0.0.1:6653 tcp:[::1]:6653 unix:/run/x.sock tcp::6633]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v %v", got, err)
	}
	for _, wrong := range []string{"", "6653", "unix:", "tcp:", "tcp:host", "udp:1.2.3.4:5", "host:"} {
		if got, err := run.ListenAddresses([]string{wrong}); err == nil {
			t.Errorf("%q is taken as %v", wrong, got)
		}
	}
}

func TestMemory(t *testing.T) {
	if m := run.Memory(); m < 1<<26 {
		t.Errorf("%d octets of memory", m)
	}
}
