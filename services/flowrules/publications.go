package flowrules

import (
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// owners returns the owners whose entries are published.
func owners() []flow.Owner { return flow.Owners(func(w *flow.Writer) bool { return w.Observed }) }

// ownerSet is a set of owners, with one bit for each.
type ownerSet uint64

const everybody = ^ownerSet(0)

func only(o flow.Owner) ownerSet { return 1 << o }

func (a ownerSet) has(o flow.Owner) bool { return a&only(o) != 0 }

// publications is what is to be published of a switch.
type publications struct {
	failures []*api.WantedFlow    // refusals
	observed []*api.FlowsObserved // readings
}

// observe queues what a reading shows of some owners.
func (u *publications) observe(p *presence, rd *reading, wanted ownerSet) {
	for _, o := range owners() {
		if wanted.has(o) {
			u.observed = append(u.observed, &api.FlowsObserved{Dpid: p.sw.String(), Owner: o.String(), Flows: rd.ours[o], Since: p.began, Address: p.address})
		}
	}
}
