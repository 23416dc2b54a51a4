package test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab/topology"
)

// callersPage is a web server that tells clients the address that it sees, of
// IPv4 and IPv6.
const callersPage = `
import http.server, socket
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        b = ("[%s]:%d" % self.client_address[:2]).replace("[::ffff:", "[").encode()
        self.send_response(200); self.send_header("Content-Length", str(len(b))); self.end_headers(); self.wfile.write(b)
    def log_message(self, *a): pass
class S(http.server.ThreadingHTTPServer): address_family = socket.AF_INET6
S(("::", 8080), H).serve_forever()
`

// echoes answers each line on port 9000 with the same.
const echoes = `
import socket, socketserver
class H(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile: self.wfile.write(line)
class S(socketserver.ThreadingTCPServer):
    allow_reuse_address = True; daemon_threads = True; address_family = socket.AF_INET6
S(("::", 9000), H).serve_forever()
`

// natStream sends a line to port 9000 of an address ten times a second over one
// connection, and writes to a file how many have come back; it ends with what
// went wrong.
const natStream = `
import socket, sys, time
try:
    for i in range(100): # the server may be starting
        try: c = socket.create_connection((sys.argv[1], 9000), 10); break
        except OSError: time.sleep(0.2)
    c.settimeout(20); f = c.makefile("rb")
    n = 0
    while True:
        c.sendall(b"x\n")
        if f.readline() != b"x\n": raise Exception("connection ended")
        n += 1
        open(sys.argv[2], "w").write(str(n))
        time.sleep(0.1)
except Exception as e:
    open(sys.argv[2] + ".error", "w").write(repr(e))
`

// refused sends a datagram to a port where nobody listens, and says whether it
// was told so, by ICMP.
const refused = `
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1); s.connect((sys.argv[1], int(sys.argv[2])))
for i in range(5):
    try: s.send(b"x"); s.recv(10)
    except ConnectionRefusedError: print("refused"); break
    except TimeoutError: pass
`

// hold opens as many connections to port 9000 as it is told at once, keeps them,
// and says how many were made within some seconds.
const hold = `
import socket, sys, threading
made = []
def connect():
    try: made.append(socket.create_connection((sys.argv[1], 9000), 4))
    except Exception: pass
all = [threading.Thread(target=connect) for i in range(int(sys.argv[2]))]
for t in all: t.start()
for t in all: t.join()
print(len(made), flush=True)
`

// natLab is three switches in a row with two hosts each, of which h6, at s3, is
// outside, and h2 and h4 take no part.
func natLab(t *testing.T, c *controller) *farm {
	t.Helper()
	topo, err := topology.Resolve("linear:3,2")
	if err != nil {
		t.Fatal(err)
	}
	for i := range topo.Hosts {
		h := &topo.Hosts[i]
		if h.Name == "h6" {
			h.IPv4, h.IPv6 = netip.MustParsePrefix("198.51.100.9/24"), netip.MustParsePrefix("2001:db8::9/64")
			continue
		}
		h.IPv6, h.GW6 = netip.MustParsePrefix(fmt.Sprintf("fd00::%s/64", h.Name[1:])), netip.MustParseAddr("fd00::fe")
		h.IPv4, h.GW4 = netip.MustParsePrefix(fmt.Sprintf("10.0.0.%s/24", h.Name[1:])), netip.MustParseAddr("10.0.0.254")
	}
	f := &farm{t: t, c: c, Lab: bring(t, topo, c)}
	settled(c, f.Lab)
	return f
}

// python runs a program on a host until the test ends.
func (f *farm) python(host, program string, args ...string) {
	f.t.Helper()
	cmd, err := f.Start(context.Background(), host, append([]string{"python3", "-c", program}, args...)...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// nat sets a gateway, and waits until it is up.
func (f *farm) nat(g *api.NatGateway) {
	f.t.Helper()
	call(f.c, api.SetNat, &api.SetNatRequest{Gateway: g})
	f.natIs(g.Name, "up")
}

func (f *farm) natIs(name, state string) *api.NatGateway {
	f.t.Helper()
	var m *api.NatGateway
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.t.Log(m)
		}
	})
	eventually(f.t, "gateway "+name+" "+state, func() bool {
		list := call(f.c, api.ListNats, &api.ListNatsRequest{Name: name}).Gateways
		if len(list) != 1 {
			f.t.Fatalf("gateways: %v", list)
		}
		m = list[0]
		return m.State == state
	})
	return m
}

func natGateway(f *farm) *api.NatGateway {
	f.t.Helper()
	return &api.NatGateway{
		Name: "internet", Dpid: dpid(f.t, f.Lab, "s3"), Port: uint32(f.host("h6").Port), Pool: "198.51.100.1-198.51.100.2",
		FirstPort: 20000, LastPort: 29999, NextHop: "198.51.100.9", Gateway: "10.0.0.254", Inside: []string{"10.0.0.0/24"},
		Forwards: []*api.NatForward{{Protocol: "tcp", Port: 8000, To: "10.0.0.3", ToPort: 8080}},
	}
}

// natGateway6 is the gateway of IPv6 at the same port.
func natGateway6(f *farm) *api.NatGateway {
	f.t.Helper()
	return &api.NatGateway{
		Name: "internet6", Dpid: dpid(f.t, f.Lab, "s3"), Port: uint32(f.host("h6").Port), Pool: "2001:db8::1:0/124",
		FirstPort: 20000, LastPort: 29999, NextHop: "2001:db8::9", Gateway: "fd00::fe", Inside: []string{"fd00::/64"},
		Forwards: []*api.NatForward{{Protocol: "tcp", Port: 8000, To: "fd00::3", ToPort: 8080}, {Protocol: "udp", Address: "2001:db8::1:5", Port: 53, To: "fd00::3"}},
	}
}

// seen fetches the page of callersPage until it is there, and returns the
// address that the server saw.
func (f *farm) seen(from, url string) netip.AddrPort {
	f.t.Helper()
	var at netip.AddrPort
	last := ""
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.t.Logf("%s from %s: %s", url, from, last)
		}
	})
	eventually(f.t, url+" from "+from, func() bool {
		var err error
		last = f.get(from, url)
		if addr, port, ok := strings.Cut(last, "]:"); ok && !strings.Contains(addr, ".") {
			at, err = netip.ParseAddrPort(last)
		} else {
			at, err = netip.ParseAddrPort(strings.TrimPrefix(addr, "[") + ":" + port)
		}
		return err == nil
	})
	return at
}

// unreached checks that pages are not to be had.
func (f *farm) unreached(from string, urls ...string) {
	var work sync.WaitGroup
	for _, url := range urls {
		work.Go(func() {
			if got := f.get(from, url); !strings.HasPrefix(got, "error") {
				f.t.Errorf("%s from outside: %s", url, got)
			}
		})
	}
	work.Wait()
}

func TestNat(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := natLab(t, c)
	defer explain(c)
	f.nat(natGateway(f))
	for _, server := range []string{"h6", "h3"} {
		f.python(server, callersPage)
	}
	for _, h := range []string{"h1", "h3", "h5"} {
		at := f.seen(h, "http://198.51.100.9:8080/")
		if a := at.Addr().String(); a != "198.51.100.1" && a != "198.51.100.2" || at.Port() < 20000 || at.Port() > 29999 {
			t.Errorf("%s is seen as %v", h, at)
		}
		eventually(t, h+" pings outside", func() bool {
			_, err := f.Exec(context.Background(), h, "ping", "-c", "2", "-W", "2", "198.51.100.9")
			return err == nil
		})
		eventually(t, h+" pings the gateway", func() bool {
			_, err := f.Exec(context.Background(), h, "ping", "-c", "1", "-W", "2", "10.0.0.254")
			return err == nil
		})
	}
	// Pings of several hosts at once, each with an identifier of its own.
	var pinging sync.WaitGroup
	for h, identifier := range map[string]string{"h1": "77", "h3": "78", "h5": "79"} {
		pinging.Go(func() {
			if out, err := f.Exec(context.Background(), h, "ping", "-e", identifier, "-c", "3", "-i", "0.3", "-W", "5", "198.51.100.9"); err != nil {
				t.Errorf("%s pings outside while others do: %v %s", h, err, out)
			}
		})
	}
	pinging.Wait()
	if at := f.seen("h6", "http://198.51.100.1:8000/"); at.Addr().String() != "198.51.100.9" {
		t.Errorf("the server inside sees %v", at)
	}
	// From outside nobody gets in without a rule, whatever he addresses.
	if _, err := f.Exec(context.Background(), "h6", "ip", "route", "add", "10.0.0.0/24", "via", "198.51.100.1"); err != nil {
		t.Fatal(err)
	}
	f.unreached("h6", "http://198.51.100.1:8080/", "http://198.51.100.2:8000/", "http://10.0.0.3:8080/")
	again := call(c, api.SetNat, &api.SetNatRequest{Gateway: natGateway(f)})
	if again.State != "up" || again.PacketsOut == 0 {
		eventually(t, "packets counted", func() bool {
			return f.natIs("internet", "up").PacketsOut > 0 && f.natIs("internet", "up").PacketsIn > 0
		})
	}
	// A call that is made again because its answer was lost finds nothing to delete.
	first := call(c, api.DeleteNat, &api.DeleteNatRequest{Name: "internet"}).Deleted
	if left := call(c, api.ListNats, &api.ListNatsRequest{}).Gateways; len(left) > 0 {
		t.Errorf("after the gateway has been deleted (%v) there is %v", first, left)
	}
	if call(c, api.DeleteNat, &api.DeleteNatRequest{Name: "internet"}).Deleted {
		t.Error("the gateway was deleted twice")
	}
	eventually(t, "no entries left", func() bool {
		return len(call(c, api.ReadFlows, &api.ReadFlowsRequest{Dpid: dpid(t, f.Lab, "s3"), Owner: "nat"}).Flows) == 0
	})
}

// TestNat6: the same for IPv6, beside a gateway of IPv4 at the same port.
func TestNat6(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := natLab(t, c)
	defer explain(c)
	f.nat(natGateway(f))
	f.nat(natGateway6(f))
	pool := netip.MustParsePrefix("2001:db8::1:0/124")
	for _, server := range []string{"h6", "h3"} {
		f.python(server, callersPage)
	}
	for _, h := range []string{"h1", "h3", "h5"} {
		if at := f.seen(h, "http://[2001:db8::9]:8080/"); !pool.Contains(at.Addr()) || at.Port() < 20000 || at.Port() > 29999 {
			t.Errorf("%s is seen as %v", h, at)
		}
		for _, to := range []string{"2001:db8::9", "fd00::fe"} {
			eventually(t, h+" pings "+to, func() bool {
				_, err := f.Exec(context.Background(), h, "ping", "-c", "2", "-W", "2", to)
				return err == nil
			})
		}
	}
	if at := f.seen("h6", "http://[2001:db8::1:0]:8000/"); at.Addr().String() != "2001:db8::9" {
		t.Errorf("the server inside sees %v", at)
	}
	if at := f.seen("h1", "http://198.51.100.9:8080/"); !strings.HasPrefix(at.Addr().String(), "198.51.100.") {
		t.Errorf("by IPv4 h1 is seen as %v", at)
	}
	if _, err := f.Exec(context.Background(), "h6", "ip", "route", "add", "fd00::/64", "via", "2001:db8::1:1"); err != nil {
		t.Fatal(err)
	}
	f.unreached("h6", "http://[2001:db8::1:0]:8080/", "http://[2001:db8::1:1]:8000/", "http://[fd00::3]:8080/")
	// No link-local address, and no other of inside's, has left.
	list := call(c, api.ListNats, &api.ListNatsRequest{}).Gateways
	if len(list) != 2 || list[0].Zone == list[1].Zone || list[0].Mac == list[1].Mac {
		t.Errorf("gateways: %v", list)
	}
}

// TestNatErrors: an ICMP error about a translated packet finds the host that
// sent it, with its own addresses in it, out and in, by IPv4 and IPv6.
func TestNatErrors(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := natLab(t, c)
	defer explain(c)
	g := natGateway(f)
	g.Forwards = append(g.Forwards, &api.NatForward{Protocol: "udp", Port: 53, To: "10.0.0.3"})
	f.nat(g)
	f.nat(natGateway6(f))
	for _, h := range []string{"h3", "h5"} { // known, so that they are reached
		for _, to := range []string{"198.51.100.9", "2001:db8::9"} {
			eventually(t, h+" pings "+to, func() bool {
				_, err := f.Exec(context.Background(), h, "ping", "-c", "1", "-W", "2", to)
				return err == nil
			})
		}
	}
	for _, x := range []struct{ from, to, port string }{
		{"h1", "198.51.100.9", "4000"}, {"h1", "2001:db8::9", "4000"}, {"h5", "2001:db8::9", "4000"}, // the answer comes from outside
		{"h6", "198.51.100.1", "53"}, {"h6", "2001:db8::1:5", "53"}, // from inside, of a forward
	} {
		eventually(t, x.from+" is told that "+x.to+" refuses", func() bool {
			out, err := f.Exec(context.Background(), x.from, "python3", "-c", refused, x.to, x.port)
			return err == nil && strings.TrimSpace(out) == "refused"
		})
	}
}

// TestNatRestart: connections through gateways go on while the controller is
// away and while another takes over.
func TestNatRestart(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := natLab(t, c)
	f.nat(natGateway(f))
	f.nat(natGateway6(f))
	f.python("h6", echoes)
	servers, files := []string{"198.51.100.9", "2001:db8::9"}, []string{}
	for i, server := range servers {
		files = append(files, filepath.Join(t.TempDir(), strconv.Itoa(i)))
		f.python("h1", natStream, server, files[i])
	}
	lines := func(file string) int {
		if e, err := os.ReadFile(file + ".error"); err == nil {
			t.Fatalf("the stream to %s broke: %s", servers[slices.Index(files, file)], e)
		}
		b, _ := os.ReadFile(file)
		n, _ := strconv.Atoi(string(b))
		return n
	}
	more := func(what string) {
		for _, file := range files {
			n := lines(file)
			eventually(t, what, func() bool { return lines(file) >= n+10 })
		}
	}
	more("the stream flows")
	eventually(t, "both addresses of h1 kept", func() bool { return keysWith(t, c.store, "nat.hosts", f.host("h1").MAC.String()) == 2 })
	c.stop()
	more("the stream flows without the controller")
	f.c = start(t, options{store: c.store, address: c.address})
	f.natIs("internet", "up")
	f.natIs("internet6", "up")
	more("the stream flows with the next controller")
	f.python("h6", callersPage)
	if at := f.seen("h3", "http://198.51.100.9:8080/"); !strings.HasPrefix(at.Addr().String(), "198.51.100.") {
		t.Errorf("h3 is seen as %v", at)
	}
	more("the stream flows still")
}

// TestNatExhausted: connections that get no port are refused, which is seen, and
// leave no packet untranslated.
func TestNatExhausted(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := natLab(t, c)
	g, g6 := natGateway(f), natGateway6(f)
	g.Pool, g.FirstPort, g.LastPort = "198.51.100.1", 20000, 20003
	g6.Pool, g6.FirstPort, g6.LastPort, g6.Forwards = "2001:db8::1:0", 20000, 20003, nil
	f.nat(g)
	f.nat(g6)
	f.python("h6", echoes)
	figure := func(name, gateway string) (value float64) {
		for _, mf := range c.gather() {
			for _, x := range mf.Metric {
				for _, l := range x.Label {
					if mf.GetName() == name && l.GetName() == "gateway" && l.GetValue() == gateway {
						value += x.GetCounter().GetValue() + x.GetGauge().GetValue()
					}
				}
			}
		}
		return value
	}
	for i, x := range []struct {
		gateway *api.NatGateway
		server  string
	}{{g, "198.51.100.9"}, {g6, "2001:db8::9"}} {
		eventually(t, "a first connection to "+x.server, func() bool {
			out, err := f.Exec(context.Background(), "h1", "python3", "-c", hold, x.server, "1")
			return err == nil && strings.TrimSpace(out) == "1"
		})
		out, err := f.Exec(context.Background(), "h1", "python3", "-c", hold, x.server, "7")
		n, _ := strconv.Atoi(strings.TrimSpace(out))
		if err != nil || n > 4 || n < 1 {
			t.Errorf("%d connections of 7 by four ports (%v %s)", n, err, out)
		}
		m := f.natIs(x.gateway.Name, "exhausted")
		if m.ExhaustedPackets == 0 || m.ExhaustedAtMs == 0 || !strings.Contains(m.Reason, x.gateway.Pool) {
			t.Errorf("got %v", m)
		}
		eventually(t, "the figures say that "+x.gateway.Name+" is exhausted", func() bool {
			return figure("weft_nat_exhausted_total", x.gateway.Name) > 0 && figure("weft_nat_exhausted", x.gateway.Name) == 1
		})
		// The other pool is not blamed.
		if i == 0 && (f.natIs("internet6", "up").ExhaustedPackets != 0 || figure("weft_nat_exhausted_total", "internet6") != 0) {
			t.Error("the pool of IPv6 is said to be exhausted, too")
		}
		// With more ports, connections are made again.
		x.gateway.LastPort = 20999
		call(c, api.SetNat, &api.SetNatRequest{Gateway: x.gateway})
		eventually(t, "connections with more ports", func() bool {
			out, err := f.Exec(context.Background(), "h1", "python3", "-c", hold, x.server, "7")
			return err == nil && strings.TrimSpace(out) == "7"
		})
	}
}
