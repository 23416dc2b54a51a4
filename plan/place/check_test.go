package place

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// small is two partitions of three services, on three servers; each test adds
// to it.
func small() *Instance {
	in := &Instance{}
	for _, p := range []string{"east", "west"} {
		for _, s := range []string{"southbound", "paths", "firewall"} {
			in.Shards = append(in.Shards, Shard{Name: s + "/" + p, Service: s, Partition: p, CPU: 1000, Memory: 1 << 30})
		}
	}
	for s := range 3 {
		in.Servers = append(in.Servers, Server{Name: fmt.Sprintf("s%d", s), CPU: 4000, Memory: 4 << 30})
	}
	in.Edges = []Edge{{0, 1, 10}, {1, 2, 5}, {3, 4, 10}, {4, 5, 5}, {1, 4, 3}}
	return in
}

// kinds lists what is broken.
func kinds(list []Violation) []Kind {
	var out []Kind
	for _, v := range list {
		if v.Text == "" {
			panic("a violation without a text")
		}
		out = append(out, v.Kind)
	}
	return out
}

func TestCheckByHand(t *testing.T) {
	split := []int{0, 0, 0, 1, 1, 1}
	for _, tt := range []struct {
		name   string
		change func(in *Instance)
		at     []int
		cost   float64
		broken []Kind
	}{
		{"one edge crosses", func(*Instance) {}, split, 3, nil},
		{"all on one", func(*Instance) {}, []int{0, 0, 0, 0, 0, 0}, 0, []Kind{KindCPU, KindMemory}},
		{"just fits", func(in *Instance) { in.Servers[0].CPU, in.Servers[0].Memory = 3000, 3<<30 }, split, 3, nil},
		{"a thousandth too much", func(in *Instance) { in.Servers[0].CPU = 2999 }, split, 3, []Kind{KindCPU}},
		{"a byte too much", func(in *Instance) { in.Servers[1].Memory = 3<<30 - 1 }, split, 3, []Kind{KindMemory}},
		{"delays", func(in *Instance) { in.Delay = [][]float64{{0, 20, 7}, {20, 0, 7}, {7, 7, 0}} }, split, 60, nil},
		{"path", func(in *Instance) { in.Paths = []Path{{Shards: []int{0, 1, 4, 3}, Weight: 2}} }, split, 5, nil},
		{"deadline kept", func(in *Instance) { in.Paths = []Path{{Shards: []int{0, 1, 4, 3}, Deadline: 1}} }, split, 3, nil},
		{"deadline broken", func(in *Instance) { in.Paths = []Path{{Shards: []int{0, 1, 4, 3}, Deadline: 0.9}} }, split, 3, []Kind{KindDeadline}},
		{"there and back", func(in *Instance) { in.Paths = []Path{{Shards: []int{0, 3, 1}, Deadline: 1}} }, split, 3, []Kind{KindDeadline}},
		{"apart", func(in *Instance) { in.Apart = [][]int{{0, 3}, {0, 1}} }, split, 3, []Kind{KindApart}},
		{"domains", func(in *Instance) {
			in.ApartDomains = [][]int{{0, 3}}
			in.Servers[0].Domain, in.Servers[1].Domain = "a", "a"
		}, split, 3, []Kind{KindApartDomains}},
		{"no domain is one's own", func(in *Instance) { in.ApartDomains = [][]int{{0, 3}} }, split, 3, nil},
		{"together", func(in *Instance) { in.Together = [][]int{{0, 1}, {2, 5}} }, split, 3, []Kind{KindTogether}},
		{"pins", func(in *Instance) { in.Shards[0].Servers, in.Shards[3].Servers = []int{1, 2}, []int{1} }, split, 3, []Kind{KindServers}},
		{"classes", func(in *Instance) {
			in.Shards[1].Class, in.Shards[2].Class, in.Shards[4].Class = Compute, RealTime, Compute
		}, split, 3, []Kind{KindClasses}},
		{"no class goes with all", func(in *Instance) { in.Shards[1].Class = Compute }, split, 3, nil},
		{"power", func(in *Instance) { in.Shards[0].Domain, in.Shards[1].Domain, in.Shards[3].Domain = "a", "b", "b" }, split, 3, []Kind{KindPower}},
		{"moves", func(in *Instance) {
			in.Current = []int{0, 2, -1, 1, 1, 1}
			in.Shards[1].Move, in.Shards[2].Move = 7, 9
		}, split, 10, nil},
		{"nowhere", func(*Instance) {}, []int{0, 0, 0, 1, 1, 3}, 0, []Kind{KindUnplaced}},
		{"too short", func(*Instance) {}, []int{0}, 0, []Kind{KindUnplaced}},
	} {
		in := small()
		tt.change(in)
		cost, broken := Check(in, tt.at)
		if cost != tt.cost || !slices.Equal(kinds(broken), tt.broken) {
			t.Errorf("%s: cost %g, broken %v; want %g, %v", tt.name, cost, kinds(broken), tt.cost, tt.broken)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(in *Instance)
		want   string
	}{
		{"nothing", func(in *Instance) { in.Shards = nil }, "no shards"},
		{"no servers", func(in *Instance) { in.Servers = nil }, "no servers"},
		{"too many", func(in *Instance) { in.Shards = make([]Shard, MaxShards+1) }, "at most"},
		{"name", func(in *Instance) { in.Shards[1].Name = in.Shards[0].Name }, "both called southbound/east"},
		{"no name", func(in *Instance) { in.Servers[1].Name = "" }, "server 1 has no name"},
		{"negative", func(in *Instance) { in.Shards[0].CPU = -1 }, "-1 thousandths"},
		{"huge", func(in *Instance) { in.Shards[0].Memory = math.MaxInt64 }, "want 0 to"},
		{"zero capacity", func(in *Instance) { in.Servers[0].CPU = 0 }, "or leave it out"},
		{"class", func(in *Instance) { in.Shards[0].Class = 9 }, "unknown class"},
		{"edge", func(in *Instance) { in.Edges[0].B = 6 }, "edge 0 names shard 6"},
		{"loop", func(in *Instance) { in.Edges[0].B = 0 }, "with itself"},
		{"NaN", func(in *Instance) { in.Edges[0].Weight = math.NaN() }, "is NaN"},
		{"infinite", func(in *Instance) { in.Edges[0].Weight = math.Inf(1) }, "is +Inf"},
		{"negative weight", func(in *Instance) { in.Edges[0].Weight = -2 }, "is -2"},
		{"cycle", func(in *Instance) { in.Paths = []Path{{Name: "arp", Shards: []int{0, 1, 0}}} }, "path 0 (arp) comes back to shard southbound/east"},
		{"empty path", func(in *Instance) { in.Paths = []Path{{}} }, "has no shards"},
		{"path", func(in *Instance) { in.Paths = []Path{{Shards: []int{0, -1}}} }, "names shard -1"},
		{"deadline", func(in *Instance) { in.Paths = []Path{{Shards: []int{0, 1}, Deadline: math.NaN()}} }, "the deadline of path 0"},
		{"pin", func(in *Instance) { in.Shards[0].Servers = []int{3} }, "server 3"},
		{"no pin", func(in *Instance) { in.Shards[0].Servers = []int{} }, "may run on no server"},
		{"twice", func(in *Instance) { in.Apart = [][]int{{0, 0}} }, "twice"},
		{"delays", func(in *Instance) { in.Delay = [][]float64{{0}} }, "delays of 1 servers"},
		{"ragged delays", func(in *Instance) { in.Delay = [][]float64{{0, 1, 1}, {1, 0}, {1, 1, 0}} }, "has 2 delays"},
		{"self", func(in *Instance) { in.Delay = [][]float64{{1, 1, 1}, {1, 0, 1}, {1, 1, 0}} }, "to itself"},
		{"one way", func(in *Instance) { in.Delay = [][]float64{{0, 1, 1}, {2, 0, 1}, {1, 1, 0}} }, "give the mean"},
		{"current", func(in *Instance) { in.Current = []int{0} }, "current placement is of 1"},
		{"now nowhere", func(in *Instance) { in.Current = []int{0, 0, 0, 0, 0, 7} }, "is on server 7 now"},
	} {
		in := small()
		tt.change(in)
		err := in.Validate()
		var invalid *InvalidError
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, &invalid) {
			t.Errorf("%s: %v; want an invalid instance: %s", tt.name, err, tt.want)
		}
	}
	if err := small().Validate(); err != nil {
		t.Error(err)
	}
}

func TestContradictions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(in *Instance)
		kind   Kind
		want   string
	}{
		{"too large", func(in *Instance) { in.Shards[2].CPU = 4001 }, KindCPU, "shard firewall/east needs 4.001 CPUs, more than any server has (4 CPUs); it would with a server of 4.001 CPUs and 1 GiB"},
		{"too much memory", func(in *Instance) { in.Shards[2].Memory = 5 << 30 }, KindMemory, "it would with server memory 5 GiB"},
		{"together too large", func(in *Instance) { in.Together = [][]int{{0, 1, 2, 3, 4}} }, KindCPU, "need 5 CPUs, more than any"},
		{"not both", func(in *Instance) {
			in.Shards[0].CPU, in.Shards[0].Memory = 5000, 8<<30
			in.Servers[0].CPU, in.Servers[1].Memory = 5000, 8<<30
		}, KindCPU, "has not both"},
		{"all", func(in *Instance) { in.Servers = in.Servers[:1] }, KindCPU, "all shards together need 6 CPUs, all 1 servers together have 4 CPUs; it would with 1 more server of 4 CPUs and 4 GiB"},
		{"halves", func(in *Instance) {
			for i := range 4 {
				in.Shards[i].CPU = 2100
			}
		}, KindCPU, "4 shards need more than half"},
		{"apart", func(in *Instance) { in.Apart = [][]int{{0, 1, 2, 3}} }, KindApart, "1 more server"},
		{"domains", func(in *Instance) {
			in.ApartDomains = [][]int{{0, 1, 2}}
			in.Servers[0].Domain, in.Servers[1].Domain = "a", "a"
		}, KindApartDomains, "servers in 1 more power domains"},
		{"apart, few to go to", func(in *Instance) {
			in.Apart = [][]int{{0, 3}}
			in.Shards[0].Servers, in.Shards[3].Servers = []int{1}, []int{1}
		}, KindApart, "pinned to server s1"},
		{"together and apart", func(in *Instance) { in.Apart, in.Together = [][]int{{0, 1}}, [][]int{{1, 2}, {2, 0}} }, KindApart, "together and apart"},
		{"together, no server", func(in *Instance) {
			in.Together = [][]int{{0, 1}}
			in.Shards[0].Servers, in.Shards[1].Servers = []int{1}, []int{2}
		}, KindServers, "no server in common"},
		{"together, classes", func(in *Instance) {
			in.Together = [][]int{{0, 1}}
			in.Shards[0].Class, in.Shards[1].Class = Compute, RealTime
		}, KindClasses, "never share"},
		{"together, power", func(in *Instance) {
			in.Together = [][]int{{0, 1}}
			in.Shards[0].Domain, in.Shards[1].Domain = "a", "b"
		}, KindPower, "different power sources"},
		{"pinned load", func(in *Instance) {
			for i := range 5 {
				in.Shards[i].Servers = []int{1}
			}
		}, KindServers, "1 CPUs more there"},
		{"pinned classes", func(in *Instance) {
			in.Shards[0].Servers, in.Shards[1].Servers = []int{1}, []int{1}
			in.Shards[0].Class, in.Shards[1].Class = Compute, Latency
		}, KindClasses, "pinned to server s1"},
		{"classes", func(in *Instance) {
			for i := range in.Shards {
				in.Shards[i].Class = RealTime
			}
			in.Shards[0].Class, in.Shards[1].CPU, in.Shards[2].CPU, in.Shards[3].CPU = Compute, 2500, 2500, 2500
			in.Servers[0].CPU, in.Servers[1].CPU, in.Servers[2].CPU = 4500, 4500, 4500
		}, KindClasses, "1 more server"},
		{"power", func(in *Instance) {
			for i, d := range []string{"a", "b", "c", "d"} {
				in.Shards[i].Domain = d
			}
		}, KindPower, "4 power sources need at least 4 servers"},
		{"deadline, size", func(in *Instance) {
			in.Shards[0].CPU, in.Shards[1].CPU = 2500, 2500
			in.Paths = []Path{{Name: "beat", Shards: []int{0, 1}, Deadline: 0.5}}
		}, KindDeadline, "path beat (southbound/east, paths/east) crosses servers at least 1 times (cpu), which takes 1 µs; its deadline is 0.5 µs; it would with a deadline of 1 µs"},
		{"deadline, replicas", func(in *Instance) {
			in.Apart = [][]int{{0, 1}, {1, 2}}
			in.Paths = []Path{{Name: "beat", Shards: []int{0, 1, 2}, Deadline: 1}}
		}, KindDeadline, "a deadline of 2 µs"},
	} {
		in := small()
		tt.change(in)
		err := in.Validate()
		var infeasible *InfeasibleError
		if !errors.As(err, &infeasible) || !infeasible.Proven {
			t.Errorf("%s: %v; want a contradiction", tt.name, err)
			continue
		}
		if !slices.ContainsFunc(infeasible.Conflicts, func(c Conflict) bool { return c.Kind == tt.kind && strings.Contains(c.String(), tt.want) }) {
			t.Errorf("%s: %v; want %s: %s", tt.name, err, tt.kind, tt.want)
		}
	}
}
