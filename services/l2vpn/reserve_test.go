package l2vpn

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// detours is a network of switches 1, 2 and 3 in which 1 and 2 are joined by a link
// between their ports 9, and by way of 3. It finds the first path without an excluded link.
func detours(_ context.Context, q *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error) {
	dpid := func(n int) string { return flow.DPID(n).String() }
	ways := []*api.LabelSwitchedPath{
		{Hops: []*api.LabelHop{{Dpid: dpid(1), OutPort: 9}, {Dpid: dpid(2), InPort: 9}}},
		{Hops: []*api.LabelHop{{Dpid: dpid(1), OutPort: 8}, {Dpid: dpid(3), InPort: 8, OutPort: 7}, {Dpid: dpid(2), InPort: 8}}},
	}
	r := &api.SetTunnelsResponse{}
	for _, m := range q.Tunnels {
		m.State, m.Reason = "down", "there is no path"
		for _, p := range ways {
			if m.From == dpid(2) {
				back := &api.LabelSwitchedPath{}
				for _, h := range slices.Backward(p.Hops) {
					back.Hops = append(back.Hops, &api.LabelHop{Dpid: h.Dpid, InPort: h.OutPort, OutPort: h.InPort})
				}
				p = back
			}
			if !slices.ContainsFunc(m.ExcludeLinks, func(l *api.Location) bool {
				return slices.ContainsFunc(p.Hops, func(h *api.LabelHop) bool { return h.Dpid == l.Dpid && (h.InPort == l.Port || h.OutPort == l.Port) })
			}) {
				m.State, m.Primary, m.Group = "up", p, flow.TunnelGroups+uint32(len(m.Name))
				break
			}
		}
		r.Outcomes = append(r.Outcomes, &api.TunnelOutcome{Name: m.Name, Tunnel: m})
	}
	for _, name := range q.Delete {
		r.Outcomes = append(r.Outcomes, &api.TunnelOutcome{Name: name})
	}
	return r, nil
}

// TestReserve: circuits are booked where there is room during their whole time, by the
// links that are foreseen, and refused with link and time where there is none; what is in
// force is refused if one that is to begin would lack its rate.
func TestReserve(t *testing.T) {
	now := time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)
	kept := wefttest.NewStore()
	b := newTestStoreAt(t, kept, defaults(), func() time.Time { return now })
	var others []*api.Tunnel
	k := &keeper{b: b, turn: make(chan struct{}, 1), ask: detours, list: func(context.Context) ([]*api.Tunnel, error) { return others, nil }}
	links := func() {
		for _, l := range [][4]uint32{{1, 9, 2, 9}, {1, 8, 3, 8}, {3, 7, 2, 8}} {
			a, z := &api.Location{Dpid: flow.DPID(l[0]).String(), Port: l[1]}, &api.Location{Dpid: flow.DPID(l[2]).String(), Port: l[3]}
			b.feed(&api.LinkChanged{Link: &api.Link{Src: a, Dst: z, State: "up", CapacityKbps: 1e6}})
			b.feed(&api.LinkChanged{Link: &api.Link{Src: z, Dst: a, State: "up", CapacityKbps: 1e6}})
		}
	}
	links()
	set := func(list ...*api.Circuit) error {
		batch, err := b.read(&api.SetCircuitsRequest{Circuits: list})
		if err == nil {
			err = k.reserve(context.Background(), batch)
		}
		if err == nil {
			err = batch.error()
		}
		if err == nil {
			err = batch.commit(context.Background(), b)
		}
		k.keep(context.Background(), false)
		return err
	}
	vlan := 100
	circuit := func(name string, mbps uint64, from, until string) *api.Circuit {
		at := func(hour string) string {
			if hour == "" {
				return ""
			}
			return "2026-12-01T" + hour + ":00Z"
		}
		vlan++
		tag := strconv.Itoa(vlan)
		return &api.Circuit{Name: name, Ends: []string{"1:1." + tag, "2:1." + tag}, RateKbps: mbps * 1000, From: at(from), Until: at(until)}
	}
	const direct, detour = "0000000000000001:9 0000000000000002:9", "0000000000000001:8 0000000000000003:7 0000000000000002:8 0000000000000003:8"
	check := func(name, want string) {
		t.Helper()
		if got := strings.Join(b.get(name).GetPlanned(), " "); got != want {
			t.Errorf("%s is booked on %s; want %s", name, got, want)
		}
	}
	refused := func(err error, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if api.KindOf(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), text) {
				t.Errorf("%v; want %s", err, text)
			}
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	day := circuit("day", 600, "08:00", "18:00")
	must(set(day))
	check("day", direct)
	must(set(circuit("noon", 600, "10:00", "12:00")))
	check("noon", detour)
	more := circuit("more", 600, "11:00", "13:00")
	refused(set(more), "port 9 has 1000000 kbit/s, of which 600000 are booked at 2026-12-01T11:00:00Z")
	must(set(circuit("night", 600, "18:00", "20:00"), circuit("thin", 400, "09:00", "17:00")))
	check("night", direct)
	check("thin", direct)
	forever := circuit("forever", 500, "", "")
	refused(set(forever), "port 9", "1000000 are booked at 2026-12-01T09:00:00Z")
	must(set(circuit("early", 500, "", "08:00")))
	must(set(day)) // as it is
	check("day", direct)
	// Two that fit each, and not together.
	refused(set(circuit("x", 300, "20:00", "22:00"), circuit("y", 800, "20:00", "21:00"), circuit("z", 800, "20:30", "21:00")), "circuit z", "nothing is changed")
	others = []*api.Tunnel{{Name: "op", ReservedKbps: 900_000, Primary: &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: flow.DPID(1).String(), OutPort: 9}, {Dpid: flow.DPID(2).String()}}}}}
	must(set(circuit("late", 200, "21:00", "22:00")))
	check("late", "0000000000000001:8 0000000000000003:7 0000000000000002:8 0000000000000003:8")
	others = nil
	// A restart loses no booking, and what has begun counts where it is.
	now = now.Add(150 * time.Minute)
	b = newTestStoreAt(t, kept, defaults(), func() time.Time { return now })
	links()
	k.b = b
	k.keep(context.Background(), false)
	check("noon", detour)
	check("day", "")
	refused(set(more), "booked at 2026-12-01T11:00:00Z")
	must(b.try(&api.SetCircuitsRequest{Delete: []string{"noon"}}))
	must(set(more))
	check("more", detour)
}
