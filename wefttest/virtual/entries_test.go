package virtual

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// wishes are the operator's entries: what was confirmed must be there, and what
// was confirmed to be deleted must not; of the others nothing is known.
type wishes struct {
	mu   sync.Mutex // guards what follows
	next int
	is   map[int]string // by priority: wanted, gone or unknown
	at   map[int]flow.DPID
}

func newWishes() *wishes { return &wishes{next: 1000, is: map[int]string{}, at: map[int]flow.DPID{}} }

func (w *wishes) set(priority int, is string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.is[priority] = is
}

// entryOf returns the entry of a priority, which tells it from all others.
func entryOf(sw flow.DPID, priority int) *api.FlowEntry {
	return &api.FlowEntry{Dpid: sw.String(), Priority: uint32(priority), Match: map[string]string{"eth_type": "0x0800", "ip_proto": "17", "udp_dst": fmt.Sprint(priority)}}
}

// wish adds an entry, or deletes one, and notes what came of it.
func (w *world) wish(ctx context.Context, c *chance) {
	by := w.cluster.present()
	if by == nil {
		return
	}
	w.wishes.mu.Lock()
	there := slices.DeleteFunc(sorted(w.wishes.is), func(p int) bool { return w.wishes.is[p] != "wanted" })
	w.wishes.mu.Unlock()
	if len(there) > 3 && c.n(2) == 0 {
		p := pick(c, there)
		w.wishes.set(p, "unknown")
		if _, err := weft.Call(ctx, by.env, api.DeleteFlows, &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{entryOf(w.wishes.at[p], p)}}); err == nil {
			w.wishes.set(p, "gone")
		}
		return
	}
	w.wishes.next++
	p, sw := w.wishes.next, pick(c, w.devices).sw
	w.wishes.mu.Lock()
	w.wishes.is[p], w.wishes.at[p] = "unknown", sw
	w.wishes.mu.Unlock()
	resp, err := weft.Call(ctx, by.env, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{entryOf(sw, p)}})
	if err == nil && len(resp.Flows) == 1 && resp.Flows[0].State != "failed" {
		w.wishes.set(p, "wanted")
	}
}

// stale says which switch has an entry of a route that forwarding does not know. It
// may have some that nobody meets, until they time out.
func (w *world) stale(ctx context.Context) error {
	by := w.cluster.present()
	if by == nil {
		return errAbsent
	}
	routes, err := weft.Call(ctx, by.env, api.ListRoutes, &api.ListRoutesRequest{})
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	known := map[string]bool{}
	for _, r := range routes.Routes {
		for _, h := range r.Hops {
			known[r.Src+">"+r.Dst+" "+h.Dpid] = true
		}
	}
	for _, d := range w.devices {
		for _, e := range d.Flows() {
			m := &e.Entry.Match.Key
			if key := fmt.Sprintf("%v>%v %v", m.EthSrc, m.EthDst, d.sw); e.Entry.Cookie.Owner() == flow.OwnerRoutes && !known[key] {
				return fmt.Errorf("switch %v has an entry of a route that nobody knows: %v to %v, port %v, %d packets, after %d s", d.sw, m.EthSrc, m.EthDst, m.InPort, e.Packets, e.DurationSec)
			}
		}
	}
	return nil
}

// tables returns the entries of all switches, as text, for who looks for the cause
// of a failure.
func (w *world) tables() string {
	var b strings.Builder
	for _, d := range w.devices {
		for _, e := range d.Flows() {
			fmt.Fprintf(&b, "%v %v table %d %d %v: %v to %d, %d packets, %d s\n", d.sw, e.Entry.Cookie.Owner(), e.Entry.Table, e.Entry.Priority, &e.Entry.Match, e.Entry.Apply, e.Entry.Goto, e.Packets, e.DurationSec)
		}
	}
	return b.String()
}

// entries compares the operator's entries with what was confirmed.
func (w *world) entries(ctx context.Context, by *witness) error {
	resp, err := weft.Call(ctx, by.env, api.ListFlows, &api.ListFlowsRequest{})
	if err != nil {
		return fmt.Errorf("list flows: %w", err)
	}
	listed, installed := map[int]bool{}, map[int]bool{}
	for _, f := range resp.Flows {
		if f.Flow.Owner == "operator" {
			listed[int(f.Flow.Priority)] = true
		}
	}
	for _, d := range w.devices {
		for _, e := range d.Flows() {
			if e.Entry.Cookie.Owner() == flow.OwnerOperator {
				installed[int(e.Entry.Priority)] = true
			}
		}
	}
	w.wishes.mu.Lock()
	defer w.wishes.mu.Unlock()
	for _, p := range sorted(w.wishes.is) {
		is := w.wishes.is[p]
		switch {
		case listed[p] != installed[p]:
			return fmt.Errorf("the operator's entry %d of switch %v: listed %v, in the switch %v", p, w.wishes.at[p], listed[p], installed[p])
		case is == "wanted" && !listed[p]:
			return fmt.Errorf("the operator's entry %d of switch %v was confirmed and is lost", p, w.wishes.at[p])
		case is == "gone" && listed[p]:
			return fmt.Errorf("the operator's entry %d of switch %v was deleted and is there", p, w.wishes.at[p])
		}
	}
	return nil
}
