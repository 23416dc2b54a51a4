package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
)

// entries counts the balancer's entries on all switches.
func (f *farm) entries() (n int) {
	f.t.Helper()
	for _, sw := range call(f.c, api.ListSwitches, &api.ListSwitchesRequest{}).Switches {
		n += len(call(f.c, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.Dpid, Owner: "balancer"}).Flows)
	}
	return n
}

// pairOf returns the pair of a client, nil if there is none.
func (f *farm) pairOf(vip, client string) *api.BalancedPair {
	f.t.Helper()
	h := f.host(client)
	for _, p := range call(f.c, api.ListPairs, &api.ListPairsRequest{Vip: vip}).Pairs {
		if p.Client == h.IPv4.Addr().String() || p.Client == h.IPv6.Addr().String() {
			return p
		}
	}
	return nil
}

// TestBalancerPairs: all connections of a client go to one member by one pair of
// entries, over IPv4 and IPv6, and the client can use the member's own address
// beside that, as all others'.
func TestBalancerPairs(t *testing.T) {
	t.Parallel()
	f := webFarm(t, options{})
	defer explain(f.c)
	for _, v6 := range []bool{false, true} {
		name, host := "web4", "10.0.0.200"
		if v6 {
			name, host = "web6", "[fd00::200]"
		}
		v := f.vip(name, v6)
		v.Per = "pair"
		f.set(v)
		url := "http://" + host + "/who"
		first := f.get("h1", url)
		p := f.pairOf(name, "h1")
		if p == nil || f.named(p.Member) != first {
			t.Fatalf("%s: %s answers, the pair is %v", name, first, p)
		}
		before := f.entries()
		if got := f.gets("h1", url, 30); got[first] != 30 {
			t.Errorf("%s: answers %v, want all of %s", name, got, first)
		}
		if after := f.entries(); after != before {
			t.Errorf("%s: %d entries before, %d after more connections", name, before, after)
		}
		eventually(t, name+": what 30 requests take is counted", func() bool {
			now := f.pairOf(name, "h1")
			return now != nil && now.Packets >= p.Packets+8*30 && now.Bytes > p.Bytes
		})
		through := f.download("h1", "http://"+host+"/big")
		own := p.Member
		if v6 {
			own = "[" + own + "]"
		}
		direct := f.download("h1", "http://"+own+":8080/big")
		for _, member := range []string{"h3", "h4", "h5"} {
			at := f.host(member).IPv4.Addr().String()
			if v6 {
				at = "[" + f.host(member).IPv6.Addr().String() + "]"
			}
			if got := f.gets("h1", "http://"+at+":8080/who", 5); got[member] != 5 {
				t.Errorf("%s: the own address of %s: %v", name, member, got)
			}
		}
		if got := f.gets("h1", url, 10); got[first] != 10 {
			t.Errorf("%s: meanwhile: %v", name, got)
		}
		f.whole(name+" through the VIP", through)
		f.whole(name+" from the member", direct)
	}
}

// bindingServer answers with the name that it is given, and binds who asks for /bound.
const bindingServer = `import http.server,sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        if self.path=="/bound": self.send_header("3gpp-Sbi-Binding","bl=nf-instance; nfinst=54804518-4191-46b3-955c-ac631f953ed8")
        self.end_headers()
        self.wfile.write(sys.argv[1].encode())
    def log_message(self,*a): pass
http.server.ThreadingHTTPServer(("",8082),H).serve_forever()`

// TestBalancerPairIndicated: a client that an answer has bound stays with its member over idle
// times, another one is balanced anew.
func TestBalancerPairIndicated(t *testing.T) {
	t.Parallel()
	f := newFarm(t, "linear:3,2", options{})
	defer explain(f.c)
	v := f.vip("web", false)
	v.Per, v.Again, v.IdleTimeout = "pair", "indicated", 2
	for i, name := range []string{"h3", "h4", "h5"} {
		cmd, err := f.Start(context.Background(), name, "python3", "-c", bindingServer, name)
		if err != nil {
			t.Fatal(err)
		}
		f.servers[name] = cmd
		t.Cleanup(func() { f.kill(name) })
		v.Pool[i].Port = 8082
	}
	f.set(v)
	bound, free := f.get("h1", "http://10.0.0.200/bound"), f.get("h2", "http://10.0.0.200/who")
	for range 3 {
		eventually(t, "the pairs have idled", func() bool { return f.pairOf("web", "h1") == nil && f.pairOf("web", "h2") == nil })
		if got := f.get("h1", "http://10.0.0.200/who"); got != bound {
			t.Errorf("the client that was bound to %s gets %s", bound, got)
		}
		got := f.get("h2", "http://10.0.0.200/who")
		if got == free {
			t.Errorf("the client that was not bound gets %s again", got)
		}
		free = got
	}
}

// TestBalancerPairDrain: with a pair, too, a drained member keeps its connections
// and gets no more.
func TestBalancerPairDrain(t *testing.T) {
	t.Parallel()
	f := webFarm(t, options{})
	defer explain(f.c)
	v := f.vip("web", false)
	v.Per = "pair"
	f.set(v)
	first := f.get("h1", "http://10.0.0.200/who")
	done := f.download("h1", "http://10.0.0.200/big")
	member := f.pairOf("web", "h1").Member
	call(f.c, api.DrainMember, &api.DrainMemberRequest{Vip: "web", Address: member, Port: 8080})
	eventually(t, "the switch has the change", func() bool { return f.get("h1", "http://10.0.0.200/who") != first })
	if got := f.gets("h1", "http://10.0.0.200/who", 8); got[first] != 0 || len(got) != 2 {
		t.Errorf("%s is drained, and connections go to %v", first, got)
	}
	f.whole("from the drained member", done)
}

// TestBalancerPairRestart: pairs and direct connections outlive the controller, and
// the next run knows them.
func TestBalancerPairRestart(t *testing.T) {
	t.Parallel()
	o := options{}
	f := webFarm(t, o)
	v := f.vip("web", false)
	v.Per = "pair"
	f.set(v)
	done := f.download("h1", "http://10.0.0.200/big")
	before := f.pairOf("web", "h1")
	direct := f.download("h1", "http://"+before.Member+":8080/big")
	f.c.stop()
	if got := f.get("h1", "http://10.0.0.200/who"); got != f.named(before.Member) {
		t.Errorf("a new connection without the controller: %s", got)
	}
	o.store, o.address = f.c.store, f.c.address
	f.c = start(t, o)
	defer explain(f.c)
	settled(f.c, f.Lab)
	f.healthy("web", 3)
	eventually(t, "the pair is known", func() bool { return f.pairOf("web", "h1") != nil })
	if now := f.pairOf("web", "h1"); now.Member != before.Member {
		t.Errorf("the pair is with %s, was with %s", now.Member, before.Member)
	}
	f.whole("through the VIP", done)
	f.whole("from the member", direct)
}

// TestBalancerAllow: when a client may not connect any more, its connections are
// reset at both ends, and others go on; who may not connect gets the responder.
func TestBalancerAllow(t *testing.T) {
	t.Parallel()
	f := webFarm(t, options{})
	defer explain(f.c)
	for i, per := range []string{"connection", "pair"} {
		name, address := "web"+per, fmt.Sprintf("10.0.0.%d", 201+i)
		v := f.vip(name, false)
		v.Address, v.Per = address, per
		f.set(v)
		mine := f.download("h1", "http://"+address+"/big")
		others := f.download("h2", "http://"+address+"/big")
		v.Allow = &api.Allow{Clients: []string{f.host("h2").IPv4.Addr().String()}}
		f.set(v)
		if out := <-mine.result; !strings.Contains(out, "reset") {
			t.Errorf("%s: the download of who may not connect any more: %s", per, out)
		}
		client := f.host("h1").IPv4.Addr().String()
		eventually(t, "members have no connection of "+client, func() bool {
			for _, m := range []string{"h3", "h4", "h5"} {
				out, err := f.Exec(context.Background(), m, "ss", "-Htn", "state", "established", "dst", client)
				if err != nil || out != "" {
					return false
				}
			}
			return true
		})
		if out := f.get("h1", "http://"+address+"/who"); !strings.Contains(out, "exit status 7") {
			t.Errorf("%s: who may not connect: %s", per, out)
		}
		f.whole(per+" of who may", others)
		f.serveAt("h6")
		v.Refuse = "to: " + f.host("h6").IPv4.Addr().String() + ":8080"
		f.set(v)
		eventually(t, per+": who may not connect gets the responder", func() bool { return f.get("h1", "http://"+address+"/who") == "h6" })
		v.Allow = nil
		f.set(v)
		if out := f.gets("h1", "http://"+address+"/who", 5); out["h3"]+out["h4"]+out["h5"] != 5 {
			t.Errorf("%s: allowed again: %v", per, out)
		}
	}
}

// serveAt is serve if the host does not yet.
func (f *farm) serveAt(name string) {
	if f.servers[name] == nil {
		f.serve(name)
	}
}

// TestBalancerShadow: what is sent to a host is served by a member of the VIP that
// shadows it, but what members send; live connections go on, and if no member
// serves, the host does.
func TestBalancerShadow(t *testing.T) {
	t.Parallel()
	f := webFarm(t, options{})
	defer explain(f.c)
	f.serve("h6")
	at := f.host("h6").IPv4.Addr().String()
	url := "http://" + at + ":8080/who"
	if out := f.get("h1", url); out != "h6" {
		t.Fatalf("the host itself: %s", out)
	}
	live := f.download("h2", "http://"+at+":8080/big")
	for _, per := range []string{"connection", "pair"} {
		v := f.vip("shadow", false)
		v.Health.Fall = 10
		v.Address, v.Port, v.Shadow, v.Per, v.Pool = at, 8080, true, per, v.Pool[:1]
		f.set(v)
		for _, client := range []string{"h1", "h2", "h5"} {
			if got := f.gets(client, url, 5); got["h3"] != 5 {
				t.Errorf("%s: %s gets %v, want h3", per, client, got)
			}
		}
		if per == "pair" {
			eventually(t, "the shadow has pairs", func() bool { return f.get("h1", url) == "h3" && f.pairOf("shadow", "h1") != nil })
			if got := f.gets("h1", url, 5); got["h3"] != 5 {
				t.Errorf("by its pair h1 gets %v, want h3", got)
			}
		}
		if got := f.get("h3", url); got != "h6" {
			t.Errorf("%s: the member itself gets %s, want h6", per, got)
		}
		if out, err := f.Exec(context.Background(), "h1", "ping", "-c1", "-W5", at); err != nil {
			t.Errorf("%s: ping of the host: %v %s", per, err, out)
		}
		f.kill("h3")
		eventually(t, "the shadow is open", func() bool { return f.show("shadow").Open })
		eventually(t, "the host serves", func() bool { return f.get("h1", url) == "h6" })
		f.serve("h3")
		f.healthy("shadow", 1)
		eventually(t, "the member serves again", func() bool { return f.get("h1", url) == "h3" })
		call(f.c, api.DeleteVip, &api.DeleteVipRequest{Name: "shadow"})
		eventually(t, "the host serves after all", func() bool { return f.get("h1", url) == "h6" })
	}
	f.whole("from the host that began before", live)
}

// crowd is a client that connects so many times, once from each of many addresses
// or else from one, and prints how many connections it had.
const crowd = `import socket,sys
kept=[]
for i in range(int(sys.argv[4])):
    s=socket.socket(); s.settimeout(100); s.bind((sys.argv[3].replace("%d",str(i)),0))
    try: s.connect((sys.argv[1],int(sys.argv[2]))); kept.append(s)
    except OSError as e: print(i,e)
print(len(kept))`

// TestBalancerPairsMany: each of many clients has its pair, members have them by
// their weights, and more connections of the clients take neither entries nor the
// controller.
func TestBalancerPairsMany(t *testing.T) {
	t.Parallel()
	const clients = 120
	f := newFarm(t, "linear:2,2", options{set: []string{fmt.Sprintf("hosts.address_limit=%d", 2*clients)}})
	defer explain(f.c)
	var batch strings.Builder
	for i := range clients {
		fmt.Fprintf(&batch, "address add 10.1.0.%d/8 dev eth0\n", i)
	}
	file := filepath.Join(t.TempDir(), "addresses")
	if err := os.WriteFile(file, []byte(batch.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := f.Exec(context.Background(), "h1", "ip", "-batch", file); err != nil {
		t.Fatal(err, out)
	}
	v := &api.Vip{Name: "web", Address: "10.0.0.200", Protocol: "tcp", Port: 80, Per: "pair", IdleTimeout: 600}
	for i, name := range []string{"h3", "h4"} {
		f.serve(name)
		if out, err := f.Exec(context.Background(), name, "ip", "route", "replace", "10.0.0.0/8", "dev", "eth0"); err != nil {
			t.Fatal(err, out)
		}
		v.Pool = append(v.Pool, &api.PoolMember{Address: f.host(name).IPv4.Addr().String(), Port: 8080, Weight: uint32(1 + 2*i)})
	}
	f.set(v)
	connect := func(from string, n int) {
		t.Helper()
		if out, err := f.Exec(context.Background(), "h1", "python3", "-c", crowd, "10.0.0.200", "80", from, fmt.Sprint(n)); err != nil || strings.TrimSpace(out) != fmt.Sprint(n) {
			t.Fatalf("%v %s", err, out)
		}
	}
	standing := f.entries()
	connect("10.1.0.%d", clients)
	is := f.show("web")
	if is.Pairs != clients || is.Pool[0].Total != clients/4 || is.Pool[1].Total != clients*3/4 {
		t.Errorf("%d clients have %d pairs, the members %d and %d", clients, is.Pairs, is.Pool[0].Total, is.Pool[1].Total)
	}
	before := f.entries()
	if before-standing != 3*clients {
		t.Errorf("%d pairs take %d entries, want 3 each", clients, before-standing)
	}
	connect("10.1.0.%d", clients)
	connect("10.1.0.7", 200)
	if now := f.show("web"); f.entries() != before || now.Pairs != clients || now.Pool[0].Total+now.Pool[1].Total != clients {
		t.Errorf("more connections: %d entries, before %d; %v", f.entries(), before, now)
	}
}

// become has a host take the place of another, which is unplugged: its Ethernet and
// IP address.
func (f *farm) become(name, other, sw string) {
	f.t.Helper()
	h := f.host(other)
	if err := f.LinkDown(context.Background(), other, sw); err != nil {
		f.t.Fatal(err)
	}
	for _, args := range [][]string{
		{"ip", "link", "set", "eth0", "down"},
		{"ip", "addr", "flush", "dev", "eth0"},
		{"ip", "link", "set", "eth0", "address", h.MAC.String()},
		{"ip", "addr", "add", h.IPv4.String(), "dev", "eth0"},
		{"ip", "link", "set", "eth0", "up"},
	} {
		if out, err := f.Exec(context.Background(), name, args...); err != nil {
			f.t.Fatal(err, out)
		}
	}
}

// TestBalancerPairMoves: a pair follows its member, and then its client, to another
// switch; what the client sends to the member's own address does so, too.
func TestBalancerPairMoves(t *testing.T) {
	t.Parallel()
	f := webFarm(t, options{})
	defer explain(f.c)
	v := f.vip("web", false)
	v.Per, v.Pool = "pair", v.Pool[:1]
	f.set(v)
	own := "http://" + v.Pool[0].Address + ":8080/who"
	moved := func(client, want string) {
		t.Helper()
		for _, url := range []string{"http://10.0.0.200/who", own} {
			eventually(t, want+" answers "+client+" at "+url, func() bool { return f.get(client, url) == want })
			if got := f.gets(client, url, 10); got[want] != 10 {
				t.Errorf("%s at %s: %v, want %s", client, url, got, want)
			}
		}
	}
	moved("h1", "h3")
	f.become("h6", "h3", "s2")
	f.serve("h6")
	moved("h1", "h6")
	f.kill("h5")
	f.become("h5", "h1", "s1")
	moved("h5", "h6")
	if p := f.pairOf("web", "h1"); p == nil || p.At.Dpid != dpid(t, f.Lab, "s3") {
		t.Errorf("the pair: %v, want its client at s3", p)
	}
}
