package plan_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/plan/partition"
	"github.com/weft-sdn/weft/plan/place"
)

// enough is a profile with all that is needed of the network's services.
func enough() *plan.Profile {
	p := &plan.Profile{Seconds: 10, Switches: 20, PacketIns: 1000, Process: plan.Demand{
		CPU: plan.Measured(0), Idle: plan.Measured(0.001), PerPacket: plan.Measured(1e-6), PerChange: plan.Measured(0), Memory: plan.Measured(20 << 20),
	}}
	for _, s := range network() {
		p.Services = append(p.Services, plan.Demand{
			Service: s.Name, Idle: plan.Measured(0.002), PerPacket: plan.Measured(5e-6), PerChange: plan.Measured(1e-3), Memory: plan.Measured(4 << 20),
		})
	}
	p.Rates = []plan.Rate{{From: "forwarding", To: "paths", Calls: 200}, {From: "discovery", To: "southbound", Calls: 10}}
	p.Delays = []plan.Delay{{Transport: "grpc", Local: plan.Measured(1e-4), Remote: plan.Measured(3e-4)}}
	return p
}

func servers(t *testing.T, n int) []plan.Server {
	t.Helper()
	list, err := plan.LocalServers(n, float64(n), plan.Bytes(n)<<30)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// fatTree returns a fat tree cut into partitions.
func fatTree(t *testing.T, partitions int) (*partition.Graph, *partition.Result) {
	t.Helper()
	g, err := partition.FatTreeOf(4)
	if err != nil {
		t.Fatal(err)
	}
	cut, err := partition.Partition(g, partition.Options{Partitions: partitions, Tolerance: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	return g, &cut
}

// few is how little is searched in tests.
func few(o plan.MakeOptions) plan.MakeOptions {
	o.Runs, o.Steps, o.PacketIns, o.Changes, o.Headroom = 2, 2000, -1, -1, -1
	return o
}

func TestEveryMadePlanKeepsTheRules(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		parts, n := 1+rng.IntN(4), 1+rng.IntN(4)
		g, cut := fatTree(t, parts)
		list := servers(t, n)
		for k := range list {
			if rng.IntN(2) == 0 {
				list[k].Address, list[k].Domain = fmt.Sprintf("10.0.0.%d", k+1), string(rune('A'+k%2))
			}
		}
		o := few(plan.MakeOptions{Cut: cut, Seed: uint64(i), Isolate: plan.Isolations()[rng.IntN(3)], Pins: map[string]string{}})
		if o.Isolate == plan.IsolateServer && n == 1 {
			o.Isolate = plan.IsolateProcess
		}
		if pin := list[rng.IntN(n)].Name; rng.IntN(2) == 0 && o.Isolate != plan.IsolateServer {
			o.Pins["discovery"] = pin
		}
		made, err := plan.Make(context.Background(), network(), g, enough(), list, o)
		if err != nil {
			t.Fatalf("%d: %d partitions, %d servers, %+v: %v", i, parts, n, o, err)
		}
		text, err := made.Plan.YAML()
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Parse("made.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := p.Check(network()); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if _, broken := place.Check(made.Instance, made.Solution.Server); len(broken) > 0 {
			t.Errorf("the placement breaks %v", broken)
		}
		for name, server := range o.Pins {
			if s, _ := made.Find(name); made.Servers[made.Solution.Server[s]].Name != server {
				t.Errorf("%s is not on %s, where it is pinned", name, server)
			}
		}
		for _, s := range g.Switches {
			if parts > 1 && p.PartitionOf(s.DPID) != cut.Names[cut.Of[mustIndex(g, s)]] {
				t.Errorf("switch %v is in partition %s of the plan", s, p.PartitionOf(s.DPID))
			}
		}
		for _, l := range made.Loads() {
			if l.CPU > l.CPUMost+1e-3 || l.Memory > l.MemMost {
				t.Errorf("server %s is too full: %+v", l.Server, l)
			}
		}
		same, _, err := made.As(p, made.Where)
		if err != nil || same.Solution.Cost != made.Solution.Cost {
			t.Errorf("the plan as it was written is another: %v", err)
		}
		for s := range made.Shards {
			if e := made.Explain(s); e.Why == "" || len(e.Elsewhere) != n-1 {
				t.Errorf("explanation %+v", e)
			}
		}
		if moves := plan.Moves(made, same, plan.DefaultMoveCost()); len(moves.Moves) != 0 || moves.Gain() != 0 {
			t.Errorf("a plan differs from itself: %+v", moves)
		}
	}
}

func mustIndex(g *partition.Graph, s partition.Switch) int {
	i, _ := g.Index(s.DPID)
	return i
}

func TestTheSameSeedMakesTheSamePlan(t *testing.T) {
	g, cut := fatTree(t, 2)
	var first []byte
	for range 2 {
		made, err := plan.Make(context.Background(), network(), g, enough(), servers(t, 3), few(plan.MakeOptions{Cut: cut, Seed: 7}))
		if err != nil {
			t.Fatal(err)
		}
		text, err := made.Plan.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !slices.Equal(first, text) {
			t.Errorf("two plans of one seed differ:\n%s\n%s", first, text)
		}
		first = text
	}
}

func TestComputeServicesAreKeptApart(t *testing.T) {
	g, _ := fatTree(t, 1)
	made, err := plan.Make(context.Background(), network(), g, enough(), servers(t, 2), few(plan.MakeOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range made.Plan.Workers {
		if slices.Contains(w.Services, "paths") && (len(w.Services) != 1 || w.Class != "compute" || w.Nice <= 0) {
			t.Errorf("paths is in %+v", w)
		}
	}
	if made.Where["all-compute-s1"] != "" && made.Where["all-s1"] != "" {
		t.Errorf("computing shares a server: %v", made.Where)
	}
	one, err := plan.Make(context.Background(), network(), g, enough(), servers(t, 1), few(plan.MakeOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	if one.Plan.Worker("all-compute") == nil {
		t.Errorf("on one server, computing has no process of its own: %v", one.Where)
	}
}

func TestReplicasAreOnServersOfTheirOwn(t *testing.T) {
	g, _ := fatTree(t, 1)
	list := servers(t, 4)
	for i := range list {
		list[i].Domain = string(rune('A' + i/2))
	}
	made, err := plan.Make(context.Background(), network(), g, enough(), list, few(plan.MakeOptions{Replicas: map[string]int{"forwarding": 2}, Isolate: plan.IsolateNone}))
	if err != nil {
		t.Fatal(err)
	}
	domains := map[string]bool{}
	for i, x := range made.Shards {
		if x.Service == "forwarding" {
			domains[made.Servers[made.Solution.Server[i]].Domain] = true
		}
	}
	if len(domains) != 2 {
		t.Errorf("replicas are in the power domains %v", domains)
	}
}

func TestWhatCannotBePlacedSaysWhy(t *testing.T) {
	g, cut := fatTree(t, 2)
	for _, c := range []struct {
		name   string
		change func(p *plan.Profile, list []plan.Server, o *plan.MakeOptions) []plan.Server
		want   string
	}{
		{"missing figures", func(p *plan.Profile, list []plan.Server, _ *plan.MakeOptions) []plan.Server {
			p.Services[0].PerPacket, p.Process.Idle = plan.Figure{}, plan.Figure{}
			return list
		}, "process.idle, services.southbound.per_packet: measure it with weft profile, or write it by hand"},
		{"no delay between machines", func(p *plan.Profile, list []plan.Server, _ *plan.MakeOptions) []plan.Server {
			p.Delays[0].Remote, list[0].Address = plan.Figure{}, "10.0.0.1"
			return list
		}, "delays.grpc.remote"},
		{"shared memory of several machines", func(p *plan.Profile, list []plan.Server, o *plan.MakeOptions) []plan.Server {
			p.Delays = append(p.Delays, plan.Delay{Transport: plan.SHM, Local: plan.Measured(1e-5), Remote: plan.Measured(1e-5)})
			list[0].Address, o.Transport = "10.0.0.1", plan.SHM
			return list
		}, "the memory of a machine is its own"},
		{"no packet-ins known", func(p *plan.Profile, list []plan.Server, _ *plan.MakeOptions) []plan.Server {
			p.PacketIns = 0
			return list
		}, "give their number per second"},
		{"a shard larger than any server", func(p *plan.Profile, list []plan.Server, _ *plan.MakeOptions) []plan.Server {
			p.Services[3].Memory = plan.Measured(1 << 40)
			return list
		}, "shard forwarding"},
		{"servers without capacity", func(_ *plan.Profile, list []plan.Server, _ *plan.MakeOptions) []plan.Server {
			for i := range list {
				list[i].CPU = 0
			}
			return list
		}, "above 0 and up to 65536"},
		{"pins that contradict", func(_ *plan.Profile, list []plan.Server, o *plan.MakeOptions) []plan.Server {
			o.Pins = map[string]string{"southbound": "s1", "southbound/p2": "s2"}
			return list
		}, "shard southbound/p2 is pinned to s1 and to s2"},
		{"a pin to nowhere", func(_ *plan.Profile, list []plan.Server, o *plan.MakeOptions) []plan.Server {
			o.Pins = map[string]string{"paths": "s9"}
			return list
		}, "there is no such server; there are s1, s2, s3"},
		{"apart and together", func(_ *plan.Profile, list []plan.Server, o *plan.MakeOptions) []plan.Server {
			o.Apart, o.Together = [][]string{{"gateway", "discovery"}}, [][]string{{"gateway", "discovery"}}
			return list
		}, "gateway"},
		{"replicas of what runs once", func(_ *plan.Profile, list []plan.Server, o *plan.MakeOptions) []plan.Server {
			o.Replicas = map[string]int{"discovery": 2}
			return list
		}, "it may run single only"},
		{"unknown service", func(_ *plan.Profile, list []plan.Server, o *plan.MakeOptions) []plan.Server {
			o.Services = []string{"telepathy"}
			return list
		}, "unknown service \"telepathy\"; allowed: southbound"},
		{"no servers", func(*plan.Profile, []plan.Server, *plan.MakeOptions) []plan.Server { return nil }, "there are none"},
		{"more headroom than there is", func(_ *plan.Profile, list []plan.Server, o *plan.MakeOptions) []plan.Server {
			o.Headroom = 1.5
			return list
		}, "want a share below 1"},
	} {
		p, o := enough(), few(plan.MakeOptions{Cut: cut})
		list := c.change(p, servers(t, 3), &o)
		if _, err := plan.Make(context.Background(), network(), g, p, list, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q in it", c.name, err, c.want)
		}
	}
}

func TestInfeasibleIsTold(t *testing.T) {
	g, _ := fatTree(t, 1)
	_, err := plan.Make(context.Background(), network(), g, enough(), servers(t, 1), few(plan.MakeOptions{Isolate: plan.IsolateServer}))
	infeasible := (*place.InfeasibleError)(nil)
	if !errors.As(err, &infeasible) || len(infeasible.Conflicts) == 0 {
		t.Errorf("computing and the rest on one server: %v", err)
	}
}

func TestMovesAreWeighed(t *testing.T) {
	g, _ := fatTree(t, 1)
	list := servers(t, 2)
	made := func(pin string) *plan.Made {
		o := few(plan.MakeOptions{Isolate: plan.IsolateNone, Pins: map[string]string{"discovery": pin, "southbound": "s1", "forwarding": "s1", "paths": "s1", "gateway": "s1"}})
		m, err := plan.Make(context.Background(), network(), g, enough(), list, o)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	apart, together := made("s2"), made("s1")
	u := plan.Moves(apart, together, plan.DefaultMoveCost())
	if len(u.Moves) != 1 || u.Moves[0].Shard != "discovery" || u.Moves[0].From != "s2:all-s2" || u.Moves[0].To != "s1:all-s1" || u.Moves[0].Cost <= 0 {
		t.Fatalf("moves %+v", u.Moves)
	}
	if seconds, ever := u.PaysBack(); !ever || seconds <= 0 || u.Gain() <= 0 {
		t.Errorf("gain %v, paid back in %v, ever: %v", u.Gain(), seconds, ever)
	}
	if _, ever := plan.Moves(together, apart, plan.DefaultMoveCost()).PaysBack(); ever {
		t.Error("a move to where it costs more pays off")
	}
	stay := few(plan.MakeOptions{Isolate: plan.IsolateNone, Current: apart.Places(), Move: plan.MoveCost{Pause: 5, Horizon: 1}})
	kept, err := plan.Make(context.Background(), network(), g, enough(), list, stay)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(kept.Places(), apart.Places()) {
		t.Errorf("moves that cost more than they bring are made: %v, then %v", apart.Places(), kept.Places())
	}
}

func TestSessionsMoveLast(t *testing.T) {
	g, cut := fatTree(t, 2)
	list := servers(t, 2)
	make := func(pin string) *plan.Made {
		m, err := plan.Make(context.Background(), network(), g, enough(), list, few(plan.MakeOptions{Cut: cut, Isolate: plan.IsolateNone, Pins: map[string]string{
			"southbound": pin, "discovery": pin, "forwarding": pin, "paths": pin, "gateway": pin,
		}}))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	u := plan.Moves(make("s1"), make("s2"), plan.DefaultMoveCost())
	if len(u.Moves) == 0 || u.Moves[0].Sessions > 0 || !u.Moves[0].Twice || u.Moves[len(u.Moves)-1].Sessions == 0 {
		t.Errorf("moves in the order %+v", u.Moves)
	}
}
