package l2vpn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// routes are parallel routes between switches 1 and 2, by the port of the first link, and
// a service of tunnels over them: each tunnel takes the first route that it may and that has room.
type routes struct {
	t        *testing.T
	b        *store
	capacity map[uint32]uint64 // of each route, by its port at both switches
	tunnels  map[string]*api.Tunnel
	keeper   *keeper
	mover    *mover
	group    uint32
}

func newRoutes(t *testing.T, kept *wefttest.Store, now func() time.Time, capacity map[uint32]uint64) *routes {
	r := &routes{t: t, capacity: capacity, tunnels: map[string]*api.Tunnel{}, group: flow.TunnelGroups}
	r.begin(kept, now)
	return r
}

// begin has a store begin, which continues with what an earlier one has kept.
func (r *routes) begin(kept *wefttest.Store, now func() time.Time) {
	r.b = newTestStoreAt(r.t, kept, defaults(), now)
	r.keeper = &keeper{b: r.b, ask: r.set, turn: make(chan struct{}, 1), kicked: make(chan struct{}, 1)}
	r.mover = &mover{b: r.b, try: r.set}
	var list []*api.Tunnel
	for _, t := range r.tunnels {
		list = append(list, t)
	}
	r.b.learn(list, true)
}

// free returns what is not booked on a route in a direction, but for one tunnel.
func (r *routes) free(port uint32, from, but string) uint64 {
	left := r.capacity[port]
	for name, t := range r.tunnels {
		if name != but && t.From == from && t.Primary != nil && t.Primary.Hops[0].OutPort == port {
			left -= min(left, t.ReservedKbps)
		}
	}
	return left
}

func (r *routes) set(_ context.Context, q *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error) {
	resp := &api.SetTunnelsResponse{}
	for _, m := range q.Tunnels {
		m, old := proto.CloneOf(m), r.tunnels[m.Name]
		m.State, m.Reason, m.Primary = "down", "there is no path with room", nil
		ports := []uint32{3, 4, 5}
		if old.GetPrimary() != nil {
			ports = append([]uint32{old.Primary.Hops[0].OutPort}, ports...)
		}
		for _, p := range ports {
			avoided := slices.ContainsFunc(m.ExcludeLinks, func(l *api.Location) bool { return l.Port == p })
			if r.capacity[p] > 0 && !avoided && r.free(p, m.From, m.Name) >= m.ReservedKbps {
				m.State, m.Reason, m.Active = "up", "", "primary"
				m.Primary = &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: m.From, OutPort: p}, {Dpid: m.To, InPort: p}}}
				m.Path = []string{m.From, m.To}
				break
			}
		}
		o := &api.TunnelOutcome{Name: m.Name, Tunnel: m}
		if resp.Outcomes = append(resp.Outcomes, o); m.State == "down" && old.GetPrimary() != nil {
			o.Code, o.Error, o.Tunnel = uint32(codes.ResourceExhausted), "it stays as it is: "+m.Reason, nil
			continue
		}
		if q.DryRun {
			continue
		}
		if m.Group = old.GetGroup(); m.Group == 0 {
			r.group++
			m.Group = r.group
		}
		r.tunnels[m.Name] = m
	}
	for _, name := range q.Delete {
		if !q.DryRun {
			delete(r.tunnels, name)
		}
		resp.Outcomes = append(resp.Outcomes, &api.TunnelOutcome{Name: name})
	}
	return resp, nil
}

// settle has tunnels and switches follow what is wanted.
func (r *routes) settle() {
	for i := 0; i < 2 || i < 40 && len(r.b.tunnels.due) > 0; i++ {
		r.mover.share(r.t.Context())
		r.mover.share(r.t.Context())
		r.keeper.keep(r.t.Context(), false)
		for sw := flow.DPID(1); sw <= 4; sw++ {
			wholeOf(r.b, sw)
			r.b.answered(sw, nil, nil)
		}
		r.mover.share(r.t.Context())
	}
}

// route returns the route that a circuit takes from one end to the other.
func (r *routes) route(name string, from int) uint32 {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	t := r.b.tunnels.between(r.b.status[name].circuit, from, 1-from)
	if !carries(t) {
		return 0
	}
	return t.Primary.Hops[0].OutPort
}

func (r *routes) circuits(list ...*api.Circuit) {
	r.t.Helper()
	if err := r.b.try(&api.SetCircuitsRequest{Circuits: list}); err != nil {
		r.t.Fatal(err)
	}
	r.settle()
}

// TestBrokenBound: a circuit whose bound is broken moves to another route, before the old one
// goes; others of the same tunnel stay. It does not come back before the time, nor move again
// to a route where the bound was broken, nor if there is no other; it says what it does.
func TestBrokenBound(t *testing.T) {
	now := time.Unix(1e9, 0)
	clock := func() time.Time { return now }
	kept := wefttest.NewStore()
	r := newRoutes(t, kept, clock, map[uint32]uint64{3: 1e6, 4: 1e6, 5: 1e6})
	r.circuits(&api.Circuit{Name: "fast", Ends: []string{"1:1", "2:1"}, MaxDelayUs: 1000}, &api.Circuit{Name: "any", Ends: []string{"1:2", "2:2"}, MaxDelayUs: 1000})
	slow := map[uint32]bool{}
	second := func(name string) {
		t.Helper()
		now = now.Add(time.Second)
		r.b.mu.Lock()
		s := r.b.status[name]
		if s.measured = (&measured{}); slow[r.route2(name, 0)] || slow[r.route2(name, 1)] {
			s.measured.bound = "it takes too long"
		}
		if _, was := r.b.broken[name]; s.measured.bound == "" {
			delete(r.b.broken, name)
			s.detour = ""
		} else if !was {
			r.b.broken[name] = now
		}
		r.b.assess(s)
		r.b.mu.Unlock()
		r.mover.bounds(t.Context())
		if r.route(name, 0) == 0 || r.route(name, 1) == 0 {
			t.Errorf("%v: circuit %s has no way", now, name)
		}
		r.settle()
	}
	pass := func(name string, d time.Duration) (moves int) {
		was := r.route(name, 0)
		for range int(d / time.Second) {
			second(name)
			if is := r.route(name, 0); is != was {
				was = is
				moves++
			}
		}
		return moves
	}
	if got := r.route("fast", 0); got != 3 {
		t.Fatalf("it takes route %d", got)
	}
	slow[3] = true
	if n := pass("fast", 4*time.Second); n != 0 {
		t.Error("it moves at once")
	}
	if n := pass("fast", 10*time.Second); n != 1 || r.route("fast", 0) != 4 || r.route("fast", 1) != 4 {
		t.Errorf("%d moves, to route %d and back by %d, want one to 4", n, r.route("fast", 0), r.route("fast", 1))
	}
	if got := r.route("any", 0); got != 3 {
		t.Errorf("another circuit, which nobody has measured, takes route %d", got)
	}
	if m := r.b.get("fast"); m.State != "up" || len(m.Avoids) == 0 || m.AvoidsUntil == "" {
		t.Error(m)
	}
	h, _ := r.b.historyOf("fast")
	if !slices.ContainsFunc(h.States, func(s *api.CircuitState) bool { return strings.Contains(s.Reason, "it moves off 0000000000000001/3") }) {
		t.Error("the history does not tell of the move:", h)
	}
	r.begin(kept, clock)
	r.settle()
	if r.route("fast", 0) != 4 {
		t.Error("a restart moves it")
	}
	avoided := r.capacity
	r.capacity = map[uint32]uint64{3: 1e6} // what it uses fails, and only what it avoids is left
	for name, m := range r.tunnels {
		if m.Primary != nil && m.Primary.Hops[0].OutPort == 4 {
			m = proto.CloneOf(m)
			m.State, m.Primary = "down", nil
			r.tunnels[name] = m
			r.b.learn([]*api.Tunnel{m}, false)
		}
	}
	for range 3 {
		now = now.Add(time.Second)
		r.mover.bounds(t.Context())
		r.settle()
	}
	if r.route("fast", 0) != 3 || r.route("fast", 1) != 3 {
		t.Error("it is down, though a way is left that it avoids")
	}
	r.capacity = avoided
	slow[3] = true
	pass("fast", 2*time.Minute)
	if r.route("fast", 0) != 4 {
		t.Fatalf("it takes route %d", r.route("fast", 0))
	}
	now = now.Add(2 * time.Minute)
	slow[4] = true
	if n := pass("fast", time.Minute); n != 1 || r.route("fast", 0) != 5 {
		t.Errorf("%d moves, to route %d, want one to 5", n, r.route("fast", 0))
	}
	slow[5] = true
	if n := pass("fast", 3*time.Minute); n != 0 {
		t.Errorf("%d moves where all routes are slow", n)
	}
	if m := r.b.get("fast"); m.State != "degraded" || !strings.Contains(m.Reason, "it stays: ") {
		t.Error(m)
	}
	clear(slow)
	if n := pass("fast", 2*time.Minute); n != 0 {
		t.Errorf("%d moves of a circuit that is well", n)
	}
	if n := pass("fast", time.Hour); n != 1 || r.route("fast", 0) != 3 {
		t.Errorf("%d moves, to route %d, when the time is over, want one to 3", n, r.route("fast", 0))
	}
	// A route that is slow by turns does not have it move again and again.
	moves := 0
	for i := range 6 * 60 {
		slow[3] = i%4 < 2
		moves += pass("fast", 10*time.Second)
	}
	if moves > 8 {
		t.Errorf("%d moves in an hour of a route that is slow by turns", moves)
	}
	if len(r.tunnels) > 4 {
		t.Errorf("%d tunnels are left of two circuits", len(r.tunnels))
	}
}

// TestDetourKeepsProtection: a circuit with two paths does not give one up to leave a lossy
// way, and does not move for what was lost while a tunnel of it failed over.
func TestDetourKeepsProtection(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := newRoutes(t, wefttest.NewStore(), func() time.Time { return now }, map[uint32]uint64{3: 1e6, 4: 1e6, 5: 1e6})
	second := "degraded"
	r.mover.try = func(ctx context.Context, q *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error) {
		resp, err := r.set(ctx, q)
		for _, o := range resp.GetOutcomes() {
			if o.Tunnel.GetProtect() {
				o.Tunnel.State, o.Tunnel.Reason = second, "there is no second path"
			}
		}
		return resp, err
	}
	r.circuits(&api.Circuit{Name: "c", Ends: []string{"1:1", "2:1"}, Protect: true, MaxDelayUs: 1000})
	failedOver := func() {
		for _, m := range r.tunnels {
			m = proto.CloneOf(m)
			m.Since = now.UTC().Format(time.RFC3339)
			r.b.learn([]*api.Tunnel{m}, false)
		}
	}
	pass := func(d time.Duration) uint32 {
		r.b.mu.Lock()
		r.b.broken["c"], r.b.status["c"].hold = now, time.Time{}
		r.b.mu.Unlock()
		for range int(d / time.Second) {
			now = now.Add(time.Second)
			r.mover.bounds(t.Context())
			r.settle()
		}
		return r.route("c", 0)
	}
	if got := pass(20 * time.Second); got != 3 {
		t.Errorf("it moves to route %d, where it is not protected", got)
	}
	second = "up"
	failedOver()
	if got := pass(8 * time.Second); got != 3 {
		t.Errorf("it moves to route %d when a tunnel has failed over", got)
	}
	if got := pass(20 * time.Second); got != 4 {
		t.Errorf("it takes route %d, want 4", got)
	}
	later := func(d time.Duration) uint32 {
		r.b.mu.Lock()
		delete(r.b.broken, "c")
		r.b.mu.Unlock()
		for range int(d / (10 * time.Second)) {
			now = now.Add(10 * time.Second)
			r.mover.bounds(t.Context())
			r.settle()
		}
		return r.route("c", 0)
	}
	second = "degraded"
	if got := later(time.Hour); got != 4 {
		t.Errorf("it goes back to route %d, where it is not protected", got)
	}
	second = "up"
	if got := later(2 * time.Minute); got != 3 {
		t.Errorf("it takes route %d, want 3, where it is protected again", got)
	}
}

// route2 is route with the lock held.
func (r *routes) route2(name string, from int) uint32 {
	t := r.b.tunnels.between(r.b.status[name].circuit, from, 1-from)
	if !carries(t) {
		return 0
	}
	return t.Primary.Hops[0].OutPort
}

// TestUnmoved: circuits whose way is not Weft's to choose say so.
func TestUnmoved(t *testing.T) {
	for want, m := range map[string]*api.Circuit{
		"one switch":        {Ends: []string{"1:1", "1:2"}},
		"routing chooses":   {Ends: []string{"1:1", "2:1"}, Transport: "gre"},
		"its way is pinned": {Ends: []string{"1:1", "2:1"}, Pin: []string{"3"}},
		"of a vpls":         {Ends: []string{"1:1", "2:1"}, Type: vpls},
	} {
		m.Name = "c"
		c, err := readCircuit(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := unmoved(c); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", m, got, want)
		}
	}
}

// TestShares: circuits that one route cannot hold together go by several, as long as there
// is room; no route has more booked than it holds, no circuit has to be in force that does not fit
// anywhere, and after a restart all are where they were.
func TestShares(t *testing.T) {
	now := time.Unix(1e9, 0)
	clock := func() time.Time { return now }
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		kept := wefttest.NewStore()
		r := newRoutes(t, kept, clock, map[uint32]uint64{3: 1000, 4: 1000, 5: 1000})
		sum, list := uint64(0), []*api.Circuit{}
		for i := range 8 {
			rate := uint64(50 + rnd.IntN(400))
			sum += rate
			list = append(list, &api.Circuit{Name: fmt.Sprint("c", i), Ends: []string{fmt.Sprintf("1:1.%d", i+1), fmt.Sprintf("2:1.%d", i+1)}, RateKbps: rate})
		}
		if rnd.IntN(2) == 0 {
			r.circuits(list...)
		} else {
			for _, m := range list {
				r.circuits(m)
			}
		}
		up := func() (n int, at map[string]uint32) {
			at = map[string]uint32{}
			for _, m := range list {
				if r.b.get(m.Name).State == "up" {
					n++
					at[m.Name] = r.route(m.Name, 0)
				}
			}
			for p := range r.capacity {
				for _, from := range []string{flow.DPID(1).String(), flow.DPID(2).String()} {
					var booked uint64
					for _, x := range r.tunnels {
						if x.From == from && x.Primary != nil && x.Primary.Hops[0].OutPort == p {
							booked += x.ReservedKbps
						}
					}
					if booked > r.capacity[p] {
						t.Fatalf("seed %d: %d booked on route %d, which holds %d", seed, booked, p, r.capacity[p])
					}
				}
			}
			return n, at
		}
		n, at := up()
		if sum <= 1600 && n < len(list) { // each route but the last is more than half full
			t.Errorf("seed %d: %d of %d circuits of %d kbit/s in sum are up", seed, n, len(list), sum)
		}
		if n < 5 {
			t.Errorf("seed %d: only %d of %d circuits are up", seed, n, len(list))
		}
		r.begin(kept, clock)
		r.settle()
		if m, there := up(); m != n || fmt.Sprint(there) != fmt.Sprint(at) {
			t.Errorf("seed %d: a restart has %d circuits up, not %d: %v, %v", seed, m, n, there, at)
		}
		if err := r.b.try(&api.SetCircuitsRequest{Exactly: true}); err != nil {
			t.Fatal(err)
		}
		if r.settle(); len(r.tunnels) > 0 {
			t.Errorf("seed %d: %d tunnels are left", seed, len(r.tunnels))
		}
	}
}

// TestNoPathIsNoLackOfRoom: circuits stay together where there is no path at all.
func TestNoPathIsNoLackOfRoom(t *testing.T) {
	r := newRoutes(t, wefttest.NewStore(), func() time.Time { return time.Unix(1e9, 0) }, map[uint32]uint64{})
	r.circuits(&api.Circuit{Name: "a", Ends: []string{"1:1", "2:1"}, RateKbps: 10}, &api.Circuit{Name: "b", Ends: []string{"1:2", "2:2"}, RateKbps: 10})
	if m := r.b.get("b"); m.State != "requested" || m.Share != 0 {
		t.Error(m)
	}
}
