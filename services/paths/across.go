package paths

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// part is what the paths of one partition add: they know their own switches in
// detail and the other partitions by summaries, and ask the partitions along a
// path for its remaining parts. Of all links they keep the graph, without
// distances, for the broadcast tree and for alternatives to a path. nil stands
// for the paths of a whole network, which do none of that. The convergence's
// lock guards the area.
type part struct {
	area *Area
	of   func(flow.DPID) string

	// Calls to the paths of other partitions.
	find     func(context.Context, *api.FindPathRequest) (*api.FindPathResponse, error)
	exchange func(context.Context, *api.ExchangeSummariesRequest) (*api.ExchangeSummariesResponse, error)
	// report is called with the result of each exchange: nil on success.
	report func(error)

	changed chan struct{} // the summary has changed
	joined  chan struct{} // closed after the first round of calls to the others
	join    sync.Once
}

// exchangeEvery is how often summaries are exchanged even without changes, for
// partitions that could not be reached or have restarted. exchangeAgain is when
// an exchange that did not reach all is repeated.
const (
	exchangeEvery  = 2 * time.Second
	exchangeAgain  = 200 * time.Millisecond
	exchangeWithin = 5 * time.Second
	exchangesMost  = 8 // at once, so that an absent partition does not delay news
)

// crossingsMost bounds the borders that a path crosses. Only partitions with
// inconsistent knowledge give paths that cross more.
const crossingsMost = 64

// newPart returns the part of a partition; nil if c is for the whole network.
func newPart(c *Config, version uint64) (*part, error) {
	if c.Partition == "" {
		return nil, nil
	}
	p, err := c.partitions()
	if err != nil {
		return nil, err
	}
	return &part{
		area: NewArea(AreaConfig{Partition: c.Partition, Of: p.of, Version: version}),
		of:   p.of, changed: make(chan struct{}, 1), joined: make(chan struct{}), report: func(error) {},
	}, nil
}

// own reports whether a switch belongs to the partition.
func (p *part) own(d flow.DPID) bool { return p.of(d) == p.area.Partition() }

func (p *part) addSwitch(d flow.DPID) {
	if p != nil {
		p.area.AddSwitch(d)
	}
}

func (p *part) removeSwitch(d flow.DPID) {
	if p != nil {
		p.area.RemoveSwitch(d)
	}
}

// setLink records a link that was added to g. Of other partitions' switches
// only the links are known: a switch that has any is present.
func (p *part) setLink(l Link, g *Graph) {
	if p == nil {
		return
	}
	p.area.SetLink(l)
	for _, d := range []flow.DPID{l.Src.Switch, l.Dst.Switch} {
		if !p.own(d) {
			g.AddSwitch(d)
		}
	}
}

// removeLink records that a link was removed from g.
func (p *part) removeLink(src, dst flow.Location, g *Graph) {
	if p == nil {
		return
	}
	p.area.RemoveLink(src, dst)
	for _, d := range []flow.DPID{src.Switch, dst.Switch} {
		if !p.own(d) && len(g.ports[d]) == 0 {
			g.RemoveSwitch(d)
		}
	}
}

// converge computes what has changed in the partition, and schedules an
// exchange.
func (p *part) converge() {
	if p == nil {
		return
	}
	if _, changed := p.area.Inside(); changed {
		p.tellAgain()
	}
	p.area.Outside()
}

// has reports whether a switch is present.
func (c *convergence) has(d flow.DPID) bool {
	if c.graph.Current().Has(d) {
		return true
	}
	if c.part == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.part.area.Knows(d)
}

// findAcross finds a shortest path as the partition knows it: its own part, and
// beyond a border the answer of the partition there.
func (c *convergence) findAcross(ctx context.Context, req *api.FindPathRequest, src, dst flow.DPID) (*api.FindPathResponse, error) {
	if req.Crossed > crossingsMost {
		return nil, api.Errorf(codes.Aborted, "the path from %v to %v crosses more than %d borders: the partitions do not know the same yet", src, dst, crossingsMost)
	}
	resp := &api.FindPathResponse{Version: c.graph.Current().Version()}
	rest := &api.FindPathRequest{Src: req.Src, Dst: req.Dst, Hash: req.Hash, Crossed: req.Crossed + 1}
	if !c.part.own(src) { // it has just moved to another partition
		return c.part.find(ctx, rest)
	}
	p, cost, next, ok := c.walk(src, dst, req.Hash)
	if !ok { // perhaps it has just started, and does not know of the others
		if err := c.await(ctx, c.part.joined, "the other partitions"); err != nil {
			return nil, err
		}
		p, cost, next, ok = c.walk(src, dst, req.Hash)
	}
	if !ok {
		return resp, nil
	}
	m := p.message(cost)
	resp.Paths = []*api.Path{m}
	if next.Switch == 0 && next.Port == 0 {
		return resp, nil
	}
	rest.Src = next.Switch.String()
	there, err := c.part.find(ctx, rest)
	if api.KindOf(err) == codes.NotFound { // it has gone meanwhile
		return &api.FindPathResponse{Version: resp.Version}, nil
	}
	if err != nil {
		return nil, api.Errorf(api.KindOf(err), "the rest of the path, from %v in partition %s: %w", next.Switch, c.part.of(next.Switch), err)
	}
	if len(there.Paths) == 0 || len(there.Paths[0].Hops) == 0 {
		return &api.FindPathResponse{Version: resp.Version}, nil
	}
	seen := map[string]bool{}
	for _, h := range m.Hops {
		seen[h.Dpid] = true
	}
	for k, h := range there.Paths[0].Hops {
		if seen[h.Dpid] { // the partitions' knowledge is inconsistent
			return &api.FindPathResponse{Version: resp.Version}, nil
		}
		in := h.InPort
		if k == 0 {
			in = uint32(next.Port)
		}
		m.Hops = append(m.Hops, &api.Hop{Dpid: h.Dpid, InPort: in, OutPort: h.OutPort})
	}
	m.Cost += there.Paths[0].Cost
	return resp, nil
}

// walk finds the partition's own part of a path, and where it goes on.
func (c *convergence) walk(src, dst flow.DPID, hash uint64) (p Path, cost uint64, next flow.Location, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.part.area.Walk(src, dst, hash)
}

// learn adds summaries of other partitions, and reports whether they are news.
func (c *convergence) learn(list ...*api.PartitionSummary) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := false
	var bad error
	for _, m := range list {
		s, err := SummaryOf(m)
		if err == nil {
			var is bool
			is, err = c.part.area.Learn(s)
			news = news || is
		}
		if err != nil {
			bad = err
		}
	}
	if !news || !c.telling {
		return bad
	}
	began := time.Now()
	c.part.area.Outside()
	now := c.graph.renew()
	c.told++
	c.publish(&api.PathsConverged{Version: now.Version(), TookUs: uint64(time.Since(began).Microseconds())})
	return bad
}

// ownSummary returns the partition's summary, nil while the network is not
// known.
func (c *convergence) ownSummary() (list []*api.PartitionSummary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.telling {
		list = append(list, c.part.area.Summary().Message())
	}
	return list
}

// exchangeSummaries answers another partition's paths.
func (c *convergence) exchangeSummaries(_ context.Context, req *api.ExchangeSummariesRequest) (*api.ExchangeSummariesResponse, error) {
	if c.part == nil {
		return nil, api.Errorf(codes.FailedPrecondition, "paths here are those of the whole network; only those of partitions exchange summaries")
	}
	if req.Summary == nil {
		return nil, api.Errorf(codes.InvalidArgument, "summary: missing; want that of the caller's partition")
	}
	if err := c.learn(req.Summary); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	return &api.ExchangeSummariesResponse{Summaries: c.ownSummary()}, nil
}

// tellOthers exchanges summaries with the other partitions when the own one has
// changed, and at intervals, until ctx ends.
func (c *convergence) tellOthers(ctx context.Context) {
	if c.part == nil || c.ready(ctx) != nil {
		return
	}
	var under sync.WaitGroup
	defer under.Wait()
	places := make(chan struct{}, exchangesMost)
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.part.changed:
		case <-again.C:
		}
		again.Reset(exchangeEvery)
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		under.Go(func() {
			defer func() { <-places }()
			if !c.exchangeOnce(ctx) {
				select {
				case <-ctx.Done():
				case <-time.After(exchangeAgain):
					c.part.tellAgain()
				}
			}
		})
	}
}

// tellAgain schedules another exchange of summaries.
func (p *part) tellAgain() { object.Notify(p.changed) }

// exchangeOnce exchanges summaries once, and reports whether all partitions answered.
func (c *convergence) exchangeOnce(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	resp, err := c.part.exchange(ctx, &api.ExchangeSummariesRequest{Summary: c.ownSummary()[0]})
	if err == nil {
		err = c.learn(resp.Summaries...)
	}
	if ctx.Err() == nil || err == nil {
		c.part.report(err)
	}
	c.part.join.Do(func() { close(c.part.joined) })
	return err == nil && len(resp.Incomplete) == 0
}
