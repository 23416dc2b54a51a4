package packets

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// recordHandover records when the packets of a batch were handed over.
func (p *batch) recordHandover(now int64) {
	for i := range p.records {
		p.records[i].handed = now
	}
}

// count counts the packets of list that a process has decided.
func (c *Lanes) count(p *batch, list []int, to *members.Target) {
	of := local.CrossingOf{From: c.before(p), To: p.rest[0], Kind: "packet", Transport: plan.Inproc}
	if to.Peer != nil {
		of.ToProcess, of.Transport = to.Peer.Entry.Load().Process, to.Peer.TransportOf(members.PacketsMethod)
	}
	t := c.Worker.Crossings().Of(of)
	now := time.Now().UnixNano()
	var n uint32 // packets that were handed over together
	var handed int64
	end := func() {
		if n > 0 {
			t.Add(uint64(n))
			t.Took(time.Duration(now-handed), n)
		}
		n = 0
	}
	for _, i := range list {
		r := &p.records[i]
		if !r.done {
			continue
		}
		if r.handed != handed {
			end()
			handed = r.handed
		}
		n++
	}
	end()
}

// before returns the service that had the packets of a batch last: the stage
// before the first that is ahead, or the service that opened the session.
func (c *Lanes) before(p *batch) string {
	var without []string
	from := ""
	if s := p.records[0].session; s != nil {
		from, without = s.owner.Spec.Name, s.owner.Spec.Beside
	}
	order := c.Worker.Running().Pipeline
	for _, stage := range slices.Backward(order[:max(0, slices.Index(order, p.rest[0]))]) {
		if !slices.Contains(without, stage) {
			return stage
		}
	}
	return from
}
