package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// farm is a lab in which some hosts serve web pages that say who they are.
type farm struct {
	*lab.Lab
	t       *testing.T
	c       *controller
	servers map[string]*exec.Cmd
}

// newFarm brings up a lab.
func newFarm(t *testing.T, spec string, o options) *farm {
	t.Helper()
	c := start(t, o)
	f := &farm{t: t, c: c, Lab: up(t, spec, c), servers: map[string]*exec.Cmd{}}
	settled(c, f.Lab)
	for _, h := range f.Topology().Hosts { // who has no time to answer is asked again, as long as anything is waited for
		if out, err := f.Exec(context.Background(), h.Name, "sh", "-c", "for v in 4 6; do echo 100 > /proc/sys/net/ipv$v/neigh/eth0/mcast_solicit; done"); err != nil {
			t.Fatalf("%s: %v %s", h.Name, err, out)
		}
	}
	return f
}

// webFarm brings up three switches in a row with two hosts each: h1 and h2 are
// clients, h3 to h5 serve, of which h5 is at a switch of its own.
func webFarm(t *testing.T, o options) *farm {
	t.Helper()
	f := newFarm(t, "linear:3,2", o)
	for _, name := range []string{"h3", "h4", "h5"} {
		f.serve(name)
	}
	return f
}

func (f *farm) host(name string) topology.Host {
	f.t.Helper()
	h, err := f.Host(name)
	if err != nil {
		f.t.Fatal(err)
	}
	return h
}

// bigPage is the size of /big.
const bigPage = 64 << 20

// serve starts a web server on a host; /who is its name.
func (f *farm) serve(name string) {
	f.t.Helper()
	dir := f.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "who"), []byte(name), 0o644); err != nil {
		f.t.Fatal(err)
	}
	big := filepath.Join(dir, "big") // zeros, which take neither memory nor disk
	if err := errors.Join(os.WriteFile(big, nil, 0o644), os.Truncate(big, bigPage)); err != nil {
		f.t.Fatal(err)
	}
	cmd, err := f.Start(context.Background(), name, "python3", "-m", "http.server", "8080", "--bind", "::", "--directory", dir)
	if err != nil {
		f.t.Fatal(err)
	}
	f.servers[name] = cmd
	f.t.Cleanup(func() { f.kill(name) })
	eventually(f.t, "web server of "+name, func() bool {
		out, err := f.Exec(context.Background(), name, "curl", "-s", "-m", "2", "http://127.0.0.1:8080/who")
		return err == nil && out == name
	})
}

// kill ends the web server of a host.
func (f *farm) kill(name string) {
	if cmd := f.servers[name]; cmd != nil {
		delete(f.servers, name)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// get fetches a page and returns what it says, or the error.
func (f *farm) get(from, url string) string {
	out, err := f.Exec(context.Background(), from, "curl", "-g", "-s", "-S", "-m", "30", url)
	if err != nil {
		return "error: " + err.Error() + " " + out
	}
	return strings.TrimSpace(out)
}

// gets fetches a page so many times and returns how often each answered.
func (f *farm) gets(from, url string, n int) map[string]int {
	got := map[string]int{}
	for range n {
		got[f.get(from, url)]++
	}
	return got
}

// vip returns a VIP over h3 to h5. That a busy machine gives a member no time for its
// checks is no failure of it, but where Fall is less.
func (f *farm) vip(name string, v6 bool) *api.Vip {
	v := &api.Vip{
		Name: name, Address: "10.0.0.200", Protocol: "tcp", Port: 80, IdleTimeout: 60,
		Health: &api.HealthCheck{Kind: "tcp", IntervalMs: 300, TimeoutMs: 5000, Rise: 1, Fall: 100},
	}
	if v6 {
		v.Address = "fd00::200"
	}
	for _, name := range []string{"h3", "h4", "h5"} {
		h := f.host(name)
		a := h.IPv4.Addr()
		if v6 {
			a = h.IPv6.Addr()
		}
		v.Pool = append(v.Pool, &api.PoolMember{Address: a.String(), Port: 8080})
	}
	return v
}

// set makes a VIP and waits until all members that serve are up.
func (f *farm) set(v *api.Vip) {
	f.t.Helper()
	call(f.c, api.SetVip, &api.SetVipRequest{Vip: v})
	f.healthy(v.Name, len(v.Pool))
}

// healthy waits until so many members of a VIP are up.
func (f *farm) healthy(vip string, n int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("%d members of %s up", n, vip), func() bool {
		up := 0
		for _, m := range f.show(vip).Pool {
			if m.Health == "up" {
				up++
			}
		}
		return up == n
	})
}

func (f *farm) show(vip string) *api.Vip {
	f.t.Helper()
	list := call(f.c, api.ListVips, &api.ListVipsRequest{Name: vip}).Vips
	if len(list) != 1 {
		f.t.Fatalf("vip %s: %v", vip, list)
	}
	return list[0]
}

// TestBalancer spreads web requests by weights, over IPv4 and IPv6.
func TestBalancer(t *testing.T) {
	t.Parallel()
	f := webFarm(t, options{})
	defer explain(f.c)
	for _, v6 := range []bool{false, true} {
		name, url := "web4", "http://10.0.0.200/who"
		if v6 {
			name, url = "web6", "http://[fd00::200]/who"
		}
		v := f.vip(name, v6)
		v.Pool[0].Weight = 2
		f.set(v)
		got := f.gets("h1", url, 24)
		if got["h3"] < 10 || got["h3"] > 14 || got["h4"] < 4 || got["h5"] < 4 || got["h3"]+got["h4"]+got["h5"] != 24 {
			t.Errorf("%s: weights 2, 1, 1: answers %v of 24", name, got)
		}
	}
	if out, err := f.Exec(context.Background(), "h1", "ping", "-c2", "-W2", "10.0.0.200"); err != nil {
		t.Errorf("ping of the VIP: %v %s", err, out)
	}
	if out := f.get("h1", "http://"+f.host("h3").IPv4.Addr().String()+":8080/who"); out != "h3" {
		t.Errorf("a member addressed directly: %s", out)
	}
}

// download is a download of /big, of a few hundred kilobytes a second: it lasts until
// it is hurried, however slow the machine is.
type download struct {
	hurry  string // the file that says so
	result chan string
}

// downloader fetches a URL, slowly until a file is there, and prints how many octets
// have come, and the error if there is one.
const downloader = `import os,sys,time,urllib.request
n=0
try:
    r=urllib.request.urlopen(sys.argv[1],timeout=300)
    while True:
        slow=not os.path.exists(sys.argv[2])
        b=r.read(4096 if slow else 1<<20)
        if not b: break
        n+=len(b)
        if slow: time.sleep(0.02)
    print(n)
except Exception as e: print(n,e)`

// download begins to fetch /big of a VIP, and returns once the connection is
// established.
func (f *farm) download(from, url string) *download {
	f.t.Helper()
	established := func() int {
		out, err := f.Exec(context.Background(), from, "ss", "-Htn", "state", "established")
		if err != nil {
			f.t.Fatal(err)
		}
		return strings.Count(out, "\n")
	}
	before := established()
	d := &download{filepath.Join(f.t.TempDir(), "hurry"), make(chan string, 1)}
	go func() {
		out, err := f.Exec(context.Background(), from, "python3", "-c", downloader, url, d.hurry)
		if err != nil {
			out += " " + err.Error()
		}
		d.result <- strings.TrimSpace(out)
	}()
	eventually(f.t, "connection of "+from, func() bool { return established() > before })
	return d
}

// whole has a download go on to its end, which must be that of the page.
func (f *farm) whole(what string, d *download) {
	f.t.Helper()
	if err := os.WriteFile(d.hurry, nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
	if out := <-d.result; out != fmt.Sprint(bigPage) {
		f.t.Errorf("the download %s: %s of %d octets", what, out, bigPage)
	}
}

// busy waits until a VIP has so many connections of a client, and returns the
// members that they are given to.
func (f *farm) busy(vip, client string, n int) (members []string) {
	f.t.Helper()
	a := f.host(client).IPv4.Addr().String()
	eventually(f.t, fmt.Sprintf("%d connections of %s", n, client), func() bool {
		members = nil
		for _, b := range call(f.c, api.ListConnections, &api.ListConnectionsRequest{Vip: vip}).Connections {
			if b.Client == a {
				members = append(members, b.Member)
			}
		}
		return len(members) == n
	})
	return members
}

// named returns the host that has an address.
func (f *farm) named(address string) string {
	for _, h := range f.Topology().Hosts {
		if h.IPv4.Addr().String() == address || h.IPv6.Addr().String() == address {
			return h.Name
		}
	}
	return address
}

// TestBalancerDrain has a member drained in the middle of a download: that goes
// on to its end, and new connections go elsewhere.
func TestBalancerDrain(t *testing.T) {
	t.Parallel()
	f := webFarm(t, options{})
	defer explain(f.c)
	f.set(f.vip("web", false))
	done := f.download("h1", "http://10.0.0.200/big")
	busy := f.busy("web", "h1", 1)[0]
	call(f.c, api.DrainMember, &api.DrainMemberRequest{Vip: "web", Address: busy, Port: 8080})
	if got := f.gets("h2", "http://10.0.0.200/who", 8); got[f.named(busy)] != 0 || len(got) != 2 {
		t.Errorf("%s is draining: answers %v of 8", f.named(busy), got)
	}
	f.whole("from a member that was drained", done)
	call(f.c, api.DrainMember, &api.DrainMemberRequest{Vip: "web", Address: busy, Port: 8080, Undo: true})
	if got := f.gets("h2", "http://10.0.0.200/who", 6); got[f.named(busy)] == 0 || len(got) != 3 {
		t.Errorf("%s is back: answers %v of 6", f.named(busy), got)
	}
}

// TestBalancerHealth has a server end: new connections go elsewhere, and come
// back with it.
func TestBalancerHealth(t *testing.T) {
	t.Parallel()
	f := webFarm(t, options{})
	defer explain(f.c)
	v := f.vip("web", false)
	v.Health.Fall = 10
	f.set(v)
	f.kill("h4")
	f.healthy("web", 2)
	if got := f.gets("h1", "http://10.0.0.200/who", 8); got["h3"] != 4 || got["h5"] != 4 {
		t.Errorf("h4 is down: answers %v of 8", got)
	}
	f.serve("h4")
	f.healthy("web", 3)
	if got := f.gets("h1", "http://10.0.0.200/who", 9); got["h4"] != 3 {
		t.Errorf("h4 is back: answers %v of 9", got)
	}
	for _, h := range []string{"h3", "h4", "h5"} {
		f.kill(h)
	}
	f.healthy("web", 0)
	if out := f.get("h1", "http://10.0.0.200/who"); !strings.Contains(out, "(7)") { // curl: failed to connect, no timeout
		t.Errorf("all members are down: %s, want the connection refused", out)
	}
}

// TestBalancerHash keeps each client with one member, and moves only those of a
// member that goes.
func TestBalancerHash(t *testing.T) {
	t.Parallel()
	f := webFarm(t, options{})
	defer explain(f.c)
	v := f.vip("web", true)
	v.Policy = "hash"
	f.set(v)
	url := "http://[fd00::200]/who"
	got := f.gets("h1", url, 6)
	if len(got) != 1 {
		t.Fatalf("answers %v to one client", got)
	}
	was := f.get("h1", url)
	for _, h := range []string{"h3", "h4", "h5"} {
		if h != was {
			call(f.c, api.DeleteMember, &api.DeleteMemberRequest{Vip: "web", Address: f.host(h).IPv6.Addr().String(), Port: 8080})
			break
		}
	}
	if got := f.gets("h1", url, 4); got[was] != 4 {
		t.Errorf("another member has gone: answers %v, want all of %s", got, was)
	}
}

// TestBalancerRestart starts the controller anew in the middle of a download,
// which goes on; the VIP and the connection are known again.
func TestBalancerRestart(t *testing.T) {
	t.Parallel()
	o := options{}
	f := webFarm(t, o)
	f.set(f.vip("web", false))
	done := f.download("h1", "http://10.0.0.200/big")
	busy := f.busy("web", "h1", 1)[0]
	f.c.stop()
	o.store, o.address = f.c.store, f.c.address
	f.c = start(t, o)
	defer explain(f.c)
	settled(f.c, f.Lab)
	f.healthy("web", 3)
	if now := f.busy("web", "h1", 1)[0]; now != busy {
		t.Errorf("the connection is taken to be with %s, it is with %s", now, busy)
	}
	if got := f.gets("h2", "http://10.0.0.200/who", 6); len(got) != 3 {
		t.Errorf("after the restart: answers %v of 6", got)
	}
	f.whole("over a restart", done)
}

// The programs of TestBalancerGroups: a server that answers each datagram with
// its name, and a client that sends some from sockets of their own, each with an
// address of its own (Open vSwitch chooses by addresses alone for UDP), each datagram
// again until it is answered, and prints who answered.
const (
	udpServer = `import socket,sys
s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(("",5300))
while True:
    d,a=s.recvfrom(100); s.sendto(sys.argv[1].encode()+b" "+d,a)`
	udpClient = `import socket,sys
for i in range(int(sys.argv[2])):
    s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(1)
    s.bind((sys.argv[4]%i,0)); s.connect((sys.argv[1],53))
    for k in range(int(sys.argv[3])):
        for again in range(120):
            s.send(b"%d"%k)
            try:
                who,which=s.recv(100).decode().split()
                while which!=str(k): who,which=s.recv(100).decode().split()
                print(i,who); break
            except OSError: pass
        else: print(i,"lost")`
)

// TestBalancerGroups has a switch choose members by itself, by a select group,
// where all are attached to it, and another by the controller; somebody deletes
// the group.
func TestBalancerGroups(t *testing.T) {
	t.Parallel()
	f := newFarm(t, "linear:2,4", options{set: []string{"flowrules.verify_interval=1s", "flowrules.verify_age=1s"}})
	defer explain(f.c)
	v := &api.Vip{Name: "dns", Address: "10.0.0.53", Protocol: "udp", Port: 53, Stateless: true, Health: &api.HealthCheck{Kind: "icmp", IntervalMs: 300, Rise: 1}}
	for _, name := range []string{"h1", "h2", "h3"} {
		cmd, err := f.Start(context.Background(), name, "python3", "-c", udpServer, name)
		if err != nil {
			t.Fatal(err)
		}
		f.servers[name] = cmd
		t.Cleanup(func() { f.kill(name) })
		v.Pool = append(v.Pool, &api.PoolMember{Address: f.host(name).IPv4.Addr().String(), Port: 5300})
	}
	f.set(v)
	if g := f.show("dns").Groups; len(g) != 1 {
		t.Fatalf("the switches %v choose by a group, want the first", g)
	}
	const sockets = 20
	addresses := map[string]string{"h4": "10.0.4.%d", "h5": "10.0.5.%d"}
	for name, format := range addresses {
		for i := range sockets {
			if out, err := f.Exec(context.Background(), name, "ip", "address", "add", fmt.Sprintf(format, i)+"/16", "dev", "eth0"); err != nil {
				t.Fatalf("%v %s", err, out)
			}
		}
	}
	for _, name := range []string{"h1", "h2", "h3", "h4", "h5"} {
		if out, err := f.Exec(context.Background(), name, "ip", "route", "replace", "10.0.0.0/16", "dev", "eth0"); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	ask := func(from string) map[string]int {
		out, err := f.Exec(context.Background(), from, "python3", "-c", udpClient, "10.0.0.53", fmt.Sprint(sockets), "2", addresses[from])
		if err != nil {
			t.Errorf("%s: %v", from, err)
		}
		got, first := map[string]int{}, map[string]string{}
		for line := range strings.Lines(out) {
			i, who, _ := strings.Cut(strings.TrimSpace(line), " ")
			if who != "lost" {
				if first[i] != "" && first[i] != who {
					t.Errorf("%s: one socket was answered by %s and then by %s", from, first[i], who)
				}
				first[i] = who
			}
			got[who]++
		}
		return got
	}
	spread := func(when string, from string) {
		t.Helper()
		if got := ask(from); len(got) != 3 || got["lost"] != 0 {
			t.Errorf("%s, from %s: answers %v", when, from, got)
		}
	}
	groups := func() (n int) {
		on := f.show("dns").Groups
		if len(on) == 0 {
			return 0
		}
		for _, g := range call(f.c, api.ReadGroups, &api.ReadGroupsRequest{Dpid: on[0]}).Groups {
			if g.Id >= 0xb0000000 && g.Type == "select" {
				n += len(g.Buckets)
			}
		}
		return n
	}
	// What is asked before is answered through the controller, maybe by another member.
	byItself := func() bool { return groups() == 3 && present(t, f.Lab, "s1", "actions=group:") > 0 }
	eventually(t, "the switch has the group, and the entry that leads to it", byItself)
	spread("by the group", "h4")
	if n := call(f.c, api.ListConnections, &api.ListConnectionsRequest{Vip: "dns"}).Total; n != 0 {
		t.Errorf("%d connections made by the controller for a client whose switch has a group", n)
	}
	spread("by the controller", "h5")
	if n := groups(); n != 3 {
		t.Errorf("%d buckets, want 3", n)
	}
	if out, err := f.OfCtl(context.Background(), "s1", "del-flows", "cookie=0x5745070000000000/0xffffff0000000000"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if out, err := f.OfCtl(context.Background(), "s1", "del-groups"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	eventually(t, "the group is back, and the entry that leads to it", byItself)
	spread("by the group that is back", "h4")
	call(f.c, api.SetMember, &api.SetMemberRequest{Vip: "dns", Member: &api.PoolMember{Address: v.Pool[0].Address, Port: 5300, State: "draining"}})
	eventually(t, "a member less in the group", func() bool { return groups() == 2 })
	call(f.c, api.DeleteVip, &api.DeleteVipRequest{Name: "dns"})
	eventually(t, "no group and no entries left", func() bool {
		flows := 0
		for _, e := range call(f.c, api.ReadFlows, &api.ReadFlowsRequest{Dpid: "1", Owner: "balancer"}).Flows {
			if e.IdleTimeout == 0 {
				flows++
			}
		}
		return flows == 0 && len(call(f.c, api.ReadGroups, &api.ReadGroupsRequest{Dpid: "1"}).Groups) == 0
	})
}
