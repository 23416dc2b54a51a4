package balancer

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// shares opens n connections and returns how many each host got.
func (g *rig) shares(n int) map[int]int {
	got := map[int]int{}
	for i := range n {
		g.port++
		got[g.open(1+i%4, 2000+g.port)]++
	}
	return got
}

func TestWeightedIsInProportion(t *testing.T) {
	g := newRig(t)
	v := web("weighted", 5, 6, 7)
	v.Pool[0].Weight, v.Pool[1].Weight = 3, 2
	g.set(v)
	if got := g.shares(60); got[5] != 30 || got[6] != 20 || got[7] != 10 {
		t.Errorf("%v", got)
	}
	g.consistent()
}

func TestLeastGoesToTheIdle(t *testing.T) {
	g := newRig(t)
	v := web("least", 5, 6)
	v.Pool[1].Weight = 2
	g.set(v)
	if got := g.shares(30); got[5] != 10 || got[6] != 20 {
		t.Errorf("%v", got)
	}
	for _, c := range g.b.tracker.by { // those of 6 end
		if c.m.addr.Addr == v4(6) {
			g.end(c, "idle_timeout")
		}
	}
	if got := g.shares(20); got[5] != 0 {
		t.Errorf("%v, want all with the one that has none", got)
	}
}

// end has both entries of a connection removed by their switches.
func (g *rig) end(c *conn, reason string) {
	for _, back := range []bool{false, true} {
		g.endHalf(c, back, reason)
	}
}

func (g *rig) endHalf(c *conn, back bool, reason string) {
	sw, e := c.ingress.Switch, flow.Entry{}
	c.fill(&e, c.thereMatch(), c.idle)
	if back {
		sw = c.egress
		c.fill(&e, c.backMatch(), 2*c.idle)
	}
	g.b.removed(&api.FlowRemoved{Flow: api.NewFlowEntry(sw, &e), Reason: reason}, g.now)
}

func TestHashMovesOnlyWhoHasTo(t *testing.T) {
	v, err := readVip(web("hash", 5, 6, 7, 8), DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	const clients = 4000
	first, got := map[netip.Addr]*member{}, map[*member]int{}
	all := func(*member) bool { return true }
	for n := range clients {
		a := netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)})
		first[a] = v.among(a, all)
		got[first[a]]++
	}
	for _, m := range v.pool {
		if got[m] < clients/4*8/10 || got[m] > clients/4*12/10 {
			t.Errorf("member %v has %d of %d clients", m.key(), got[m], clients)
		}
	}
	gone := v.pool[2]
	for a, was := range first {
		if m := v.among(a, func(m *member) bool { return m != gone }); was != gone && m != was {
			t.Fatalf("client %v moved from %v to %v though %v has gone", a, was.key(), m.key(), gone.key())
		}
	}
}

func TestStickiness(t *testing.T) {
	g := newRig(t)
	v := web("weighted", 5, 6, 7)
	v.Stickiness = 100
	g.set(v)
	was := g.open(1, 4000)
	for i := range 9 {
		if now := g.open(1, uint16(4001+i)); now != was {
			t.Errorf("went to %d, then to %d", was, now)
		}
	}
	if _, err := g.b.DrainMember(context.Background(), &api.DrainMemberRequest{Vip: "web", Address: v4(was).String(), Port: 8080}); err != nil {
		t.Fatal(err)
	}
	if now := g.open(1, 5000); now == was || now == 0 {
		t.Errorf("the member is draining, and the client went to %d", now)
	}
	if now := g.open(1, 4000); now != was {
		t.Errorf("a connection of a draining member went to %d", now)
	}
}

// TestSharedMember: a client that goes to two VIPs from one port is not given
// the same member twice: its answers could not be told apart.
func TestSharedMember(t *testing.T) {
	g := newRig(t)
	g.set(web("weighted", 5))
	other := web("weighted", 5)
	other.Name, other.Port = "other", 81
	g.set(other)
	if g.open(1, 4000) != 5 {
		t.Fatal("no member")
	}
	frame := g.frame(1, 4000)
	frame[14+20+3] = 81
	if v, _, _ := g.send(1, frame); v != flow.Drop {
		t.Errorf("%v, want it refused", v)
	}
	if n := g.show("other").Refused; n != 1 {
		t.Errorf("%d refused", n)
	}
}

func TestLimitOfConnections(t *testing.T) {
	g := newRig(t)
	g.b.cfg.Load().Connections = 10
	g.set(web("", 5))
	if got := g.shares(15); got[5] != 10 || got[0] != 5 {
		t.Errorf("%v", got)
	}
	if l := g.b.tracker.reached.List(time.Now().UnixNano()); len(l) != 1 || l[0].Key != "balancer.connections" || l[0].Limit != 10 || l[0].Who != "VIP web" || l[0].Times != 5 {
		t.Errorf("health learns %v", l)
	}
}

func TestConnectionsEnd(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5))
	g.open(1, 4000)
	g.open(1, 4001)
	live := func() uint32 { g.consistent(); return g.show("web").Connections }
	one := func(port uint16) *conn {
		for k, c := range g.b.tracker.by {
			if k.client.Port() == port {
				return c
			}
		}
		return nil
	}
	c := one(4000)
	g.endHalf(c, true, "idle_timeout") // nothing comes back, but the client still sends
	if d := g.posted(); len(mods(d, 2, flow.Add)) != 1 || live() != 2 {
		t.Errorf("the way back of a connection in use: %v", d.Ops)
	}
	g.endHalf(c, false, "idle_timeout")
	g.endHalf(c, true, "idle_timeout")
	if live() != 1 || one(4000) != nil {
		t.Error("a connection without entries is not over")
	}
	g.end(one(4001), "delete") // somebody else
	if live() != 0 || g.open(1, 4001) != 5 || live() != 1 {
		t.Error("a connection whose entries were deleted does not go on")
	}
	g.end(one(4001), "delete")
	g.now += int64(time.Hour)
	g.b.tidy(g.now)
	if one(4001) != nil {
		t.Error("it is kept for ever")
	}
}

func TestRefusedVips(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5))
	change := func(f func(*api.Vip)) *api.Vip {
		v := web("", 6)
		v.Name, v.Port = "other", 81
		f(v)
		return v
	}
	for name, c := range map[string]struct {
		vip  *api.Vip
		kind codes.Code
	}{
		"no name":          {change(func(v *api.Vip) { v.Name = "" }), codes.InvalidArgument},
		"a name with /":    {change(func(v *api.Vip) { v.Name = "a/b" }), codes.InvalidArgument},
		"no address":       {change(func(v *api.Vip) { v.Address = "" }), codes.InvalidArgument},
		"a group's":        {change(func(v *api.Vip) { v.Address = "224.0.0.1" }), codes.InvalidArgument},
		"link-local":       {change(func(v *api.Vip) { v.Address = "fe80::1" }), codes.InvalidArgument},
		"no port":          {change(func(v *api.Vip) { v.Port = 0 }), codes.InvalidArgument},
		"port 65536":       {change(func(v *api.Vip) { v.Port = 65536 }), codes.InvalidArgument},
		"any with a port":  {change(func(v *api.Vip) { v.Protocol = "any" }), codes.InvalidArgument},
		"protocol":         {change(func(v *api.Vip) { v.Protocol = "sctp" }), codes.InvalidArgument},
		"policy":           {change(func(v *api.Vip) { v.Policy = "random" }), codes.InvalidArgument},
		"vlan":             {change(func(v *api.Vip) { v.Vlan = 4095 }), codes.InvalidArgument},
		"mac":              {change(func(v *api.Vip) { v.Mac = "01:00:00:00:00:01" }), codes.InvalidArgument},
		"another mac":      {change(func(v *api.Vip) { v.Mac = "02:00:00:00:00:99" }), codes.InvalidArgument},
		"member twice":     {change(func(v *api.Vip) { v.Pool = append(v.Pool, v.Pool[0]) }), codes.InvalidArgument},
		"member v6":        {change(func(v *api.Vip) { v.Pool[0].Address = "fd00::6" }), codes.InvalidArgument},
		"member is itself": {change(func(v *api.Vip) { v.Pool[0].Address = "10.0.0.100" }), codes.InvalidArgument},
		"member's weight":  {change(func(v *api.Vip) { v.Pool[0].Weight = 65536 }), codes.InvalidArgument},
		"member's prio":    {change(func(v *api.Vip) { v.Pool[0].Priority = 65536 }), codes.InvalidArgument},
		"member's state":   {change(func(v *api.Vip) { v.Pool[0].State = "maybe" }), codes.InvalidArgument},
		"check":            {change(func(v *api.Vip) { v.Health = &api.HealthCheck{Kind: "http"} }), codes.InvalidArgument},
		"check's interval": {change(func(v *api.Vip) { v.Health = &api.HealthCheck{Kind: "tcp", IntervalMs: 1} }), codes.InvalidArgument},
		"idle":             {change(func(v *api.Vip) { v.IdleTimeout = 65535 }), codes.InvalidArgument},
		"taken":            {change(func(v *api.Vip) { v.Port = 80 }), codes.AlreadyExists},
		"another's member": {change(func(v *api.Vip) { v.Address = "10.0.0.5" }), codes.InvalidArgument},
	} {
		if _, _, err := g.b.vips.Set(context.Background(), c.vip); api.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
	if _, _, err := g.b.vips.Set(context.Background(), nil); api.KindOf(err) != codes.InvalidArgument {
		t.Errorf("no vip: %v", err)
	}
	g.set(change(func(*api.Vip) {}))
}
