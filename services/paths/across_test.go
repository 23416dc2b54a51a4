package paths

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
)

// partners are the paths of all partitions, which ask each other directly.
type partners struct {
	t    *testing.T
	list []*convergence
	away string // a partition that does not answer
}

func newPartners(t *testing.T, r *rand.Rand, n int, ids []flow.DPID) *partners {
	p := &partners{t: t}
	lists := map[string][]string{}
	for i := range n {
		lists[fmt.Sprint("p", i)] = nil
	}
	for _, d := range ids[1:] {
		name := fmt.Sprint("p", r.IntN(n))
		lists[name] = append(lists[name], d.String())
	}
	lists["p0"] = append(lists["p0"], flow.Rest)
	for i := range n {
		own := fmt.Sprint("p", i)
		config := Config{Partition: own, Switches: lists[own], Elsewhere: maps.Clone(lists)}
		delete(config.Elsewhere, own)
		if len(config.Switches) == 0 {
			config.Switches = []string{"ffffffffffff0000"} // of none that there is
		}
		if err := config.Validate(); err != nil {
			t.Fatal(err)
		}
		c := newConvergence(uint64(i*1000), func(*api.PathsConverged) {})
		part, err := newPart(&config, uint64(i*1000))
		if err != nil {
			t.Fatal(err)
		}
		c.part = part
		part.find = func(ctx context.Context, req *api.FindPathRequest) (*api.FindPathResponse, error) {
			src, _ := flow.ParseDPID(req.Src)
			return p.of(part.of(src)).findPath(ctx, proto.CloneOf(req))
		}
		part.exchange = func(ctx context.Context, req *api.ExchangeSummariesRequest) (*api.ExchangeSummariesResponse, error) {
			all := &api.ExchangeSummariesResponse{}
			for _, other := range p.list {
				if name := other.part.area.Partition(); name == p.away {
					all.Incomplete = append(all.Incomplete, name)
					continue
				}
				resp, err := other.exchangeSummaries(ctx, proto.CloneOf(req))
				if err != nil {
					return nil, err
				}
				all.Summaries = append(all.Summaries, resp.Summaries...)
			}
			return all, nil
		}
		p.list = append(p.list, c)
	}
	for _, c := range p.list {
		c.tell(time.Now())
	}
	return p
}

func (p *partners) of(name string) *convergence {
	i := slices.IndexFunc(p.list, func(c *convergence) bool { return c.part.area.Partition() == name })
	return p.list[i]
}

// set tells of a switch, as its southbound does, and of a link, as discovery.
func (p *partners) setSwitch(d flow.DPID, up bool) {
	p.of(p.list[0].part.of(d)).switchChanged(switchMsg(d, up))
}

func (p *partners) setLink(a, b flow.Location, removed bool) {
	for _, c := range p.list {
		for _, m := range []*api.LinkChanged{linkMsg(a, b, removed), linkMsg(b, a, removed)} {
			c.linkChanged(m, time.Now())
		}
	}
}

// settle has all converge and exchange summaries.
func (p *partners) settle() {
	for _, c := range p.list {
		c.mu.Lock()
		c.converge(time.Now())
		c.mu.Unlock()
	}
	for _, c := range p.list {
		if !c.exchangeOnce(p.t.Context()) && p.away == "" {
			p.t.Fatal("summaries not exchanged")
		}
	}
}

// TestPartners: the paths of partitions that only know their own switches find
// together what those of the whole network find, and agree on its tree.
func TestPartners(t *testing.T) {
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 9))
		n := 2 + r.IntN(14)
		net := randomNetwork(r, n, r.IntN(3*n), 1, false)
		ids := slices.Sorted(maps.Keys(net.switches))
		p := newPartners(t, r, 1+r.IntN(4), ids)
		for _, d := range ids {
			p.setSwitch(d, true)
		}
		var cables []cable
		for ends := range net.links {
			if compare(ends[0], ends[1]) < 0 {
				cables = append(cables, cable{ends[0], ends[1]})
				p.setLink(ends[0], ends[1], false)
			}
		}
		slices.SortFunc(cables, func(x, y cable) int { return compare(x.a, y.a) })
		for range 8 {
			p.settle()
			p.check(net, ids)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
			if len(cables) == 0 {
				break
			}
			c := cables[r.IntN(len(cables))]
			if net.links[[2]flow.Location{c.a, c.b}] != 0 {
				net.cut(c.a, c.b)
				p.setLink(c.a, c.b, true)
			} else {
				net.wire(c.a, c.b, 1)
				p.setLink(c.a, c.b, false)
			}
		}
	}
}

func (p *partners) check(net *network, ids []flow.DPID) {
	top := net.graph.Snapshot()
	tree := top.Tree()
	for _, c := range p.list {
		got, err := c.getTree(p.t.Context(), &api.GetTreeRequest{})
		ports := map[flow.DPID][]flow.Port{}
		for _, l := range got.GetPorts() {
			ports[l.Flow().Switch] = append(ports[l.Flow().Switch], l.Flow().Port)
		}
		for _, d := range ids {
			if err != nil || !slices.Equal(ports[d], tree.Ports(d)) {
				p.t.Fatalf("tree at %v: %v, want %v (%v)", d, ports[d], tree.Ports(d), err)
			}
		}
	}
	for i, src := range ids {
		for j, dst := range ids {
			c := p.of(p.list[0].part.of(src))
			if (i+j)%5 == 0 { // whoever is asked, the answer is the same
				c = p.list[(i+j)%len(p.list)]
			}
			resp, err := c.findPath(p.t.Context(), &api.FindPathRequest{Src: src.String(), Dst: dst.String(), Hash: uint64(i)})
			_, reachable := top.Distance(src, dst)
			if !reachable && len(resp.GetPaths()) == 0 || src == dst && api.KindOf(err) == codes.NotFound { // others' switches are there if they have links
				continue
			}
			if err != nil || !reachable || len(resp.Paths) != 1 {
				p.t.Fatalf("from %v to %v: %v, %v; reachable %v", src, dst, resp, err, reachable)
			}
			var path Path
			for _, h := range resp.Paths[0].Hops {
				d, _ := flow.ParseDPID(h.Dpid)
				path = append(path, Hop{d, flow.Port(h.InPort), flow.Port(h.OutPort)})
			}
			w, err := top.Weight(path)
			if err != nil || 10*w != resp.Paths[0].Cost || path[0].Switch != src || path[len(path)-1].Switch != dst {
				p.t.Fatalf("from %v to %v: %v, cost %d: %v", src, dst, path, resp.Paths[0].Cost, err)
			}
		}
	}
}

// TestPartnersApart: partitions that do not know the same yet give no path with a
// loop, and one that is away holds up nobody; an exchange that fails is told.
func TestPartnersApart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	p := newPartners(t, r, 1, []flow.DPID{1})
	c := p.list[0]
	if _, err := c.findAcross(t.Context(), &api.FindPathRequest{Crossed: crossingsMost + 1}, 1, 2); api.KindOf(err) != codes.Aborted {
		t.Errorf("more borders than there are: %v", err)
	}
	if _, err := c.exchangeSummaries(t.Context(), &api.ExchangeSummariesRequest{}); api.KindOf(err) != codes.InvalidArgument {
		t.Errorf("no summary: %v", err)
	}
	wrong := &api.PartitionSummary{Partition: "other", Islands: []*api.PartitionIsland{{Switches: []uint64{1}}}}
	if _, err := c.exchangeSummaries(t.Context(), &api.ExchangeSummariesRequest{Summary: wrong}); api.KindOf(err) != codes.InvalidArgument {
		t.Errorf("a summary of switches that are ours: %v", err)
	}
	whole := newConvergence(0, func(*api.PathsConverged) {})
	if _, err := whole.exchangeSummaries(t.Context(), &api.ExchangeSummariesRequest{Summary: wrong}); api.KindOf(err) != codes.FailedPrecondition {
		t.Errorf("the whole network's paths: %v", err)
	}
	p.away = "p0"
	if c.exchangeOnce(t.Context()) {
		t.Error("who is away has been reached")
	}
	var told error
	c.part.report = func(err error) { told = err }
	c.part.exchange = func(context.Context, *api.ExchangeSummariesRequest) (*api.ExchangeSummariesResponse, error) {
		return nil, errors.New("no")
	}
	if c.exchangeOnce(t.Context()) || told == nil {
		t.Errorf("failed: told %v", told)
	}
}

// TestPartnersStart: paths that have started know of the others when these have
// been asked; a path that they cannot tell before waits for that.
func TestPartnersStart(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	ids := []flow.DPID{1, 2, 3, 4, 5, 6}
	p := newPartners(t, r, 2, ids)
	for i, d := range ids {
		p.setSwitch(d, true)
		if i > 0 {
			p.setLink(at2(ids[i-1], 1), at2(d, 2), false)
		}
	}
	for _, c := range p.list {
		c.mu.Lock()
		c.converge(time.Now())
		c.mu.Unlock()
	}
	of := p.list[0].part.of
	src := ids[0]
	dst := ids[slices.IndexFunc(ids, func(d flow.DPID) bool { return of(d) != of(src) })]
	c, req := p.of(of(src)), &api.FindPathRequest{Src: src.String(), Dst: dst.String()}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.findPath(short, req); api.KindOf(err) != codes.Unavailable {
		t.Errorf("before the others have been asked: %v", err)
	}
	over := make(chan struct{})
	close(over)
	c.over = over
	if _, err := c.findPath(t.Context(), req); api.KindOf(err) != codes.Unavailable {
		t.Errorf("by a service that ends before that: %v", err)
	}
	c.over = nil
	found := make(chan *api.FindPathResponse)
	go func() {
		resp, _ := c.findPath(t.Context(), req)
		found <- resp
	}()
	for _, c := range p.list {
		c.exchangeOnce(t.Context())
	}
	if resp := <-found; len(resp.GetPaths()) != 1 {
		t.Errorf("the path that has waited: %v", resp)
	}
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"":                       {},
		"partition: empty":       {Switches: []string{"1"}},
		"is the partition it":    {Partition: "a", Elsewhere: map[string][]string{"a": nil}},
		"switches: \"x\"":        {Partition: "a", Switches: []string{"x"}},
		"elsewhere: b: \"2-1\"":  {Partition: "a", Elsewhere: map[string][]string{"b": {"2-1"}}},
		"in the list of a alrea": {Partition: "a", Switches: []string{"rest"}, Elsewhere: map[string][]string{"b": {"rest"}}},
	} {
		if err := c.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %s", c, err, want)
		}
	}
	c := Config{Partition: "a", Elsewhere: map[string][]string{"b": {"1-3", "7"}}}
	p, err := c.partitions()
	if err != nil || p.of(2) != "b" || p.of(7) != "b" || p.of(8) != "a" {
		t.Errorf("%v, %v", p, err)
	}
}

// TestTellOthers: partitions that have started learn of each other by themselves,
// and of what changes; when they end, nothing of theirs goes on.
func TestTellOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	ids := []flow.DPID{1, 2, 3, 4, 5, 6}
	p := newPartners(t, r, 2, ids)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, c := range p.list {
		running.Go(func() { c.tellOthers(ctx) })
		running.Go(func() { c.gather(ctx) })
	}
	for i, d := range ids {
		p.setSwitch(d, true)
		if i > 0 {
			p.setLink(at2(ids[i-1], 1), at2(d, 2), false)
		}
	}
	found := func(n int) bool {
		for _, pair := range [][2]string{{"1", "6"}, {"6", "1"}} {
			src, _ := flow.ParseDPID(pair[0])
			resp, err := p.of(p.list[0].part.of(src)).findPath(ctx, &api.FindPathRequest{Src: pair[0], Dst: pair[1]})
			if err != nil || len(resp.Paths) != n {
				return false
			}
		}
		return true
	}
	for _, want := range []int{1, 0} {
		for limit := time.Now().Add(testwait.Limit); !found(want); time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("not %d paths from end to end after 20 s", want)
			}
		}
		p.setLink(at2(3, 1), at2(4, 2), true)
	}
	cancel()
	running.Wait()
}
