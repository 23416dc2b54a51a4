package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab"
)

// TestMulti runs two network services over two islands whose hosts have the
// same addresses: each shows its own share, and nothing of one reaches the
// other.
func TestMulti(t *testing.T) {
	t.Parallel()
	m := partitioned(t, map[string]string{"east": `"1-80"`, "west": "rest"})
	east, west := m.of["east"], m.of["west"]
	a, b := island(t, "ring:4", 1, east), island(t, "linear:3", 0x101, west, east)
	east.ready(t, 4, 4, 4)
	west.ready(t, 3, 2, 3)
	for _, l := range []*lab.Lab{a, b} {
		pingAll(t, l, false)
		pingAll(t, l, true)
	}
	for _, c := range []struct {
		n               *network
		first           string
		links, switches int
	}{{east, "000000000000000", 8, 4}, {west, "000000000000010", 4, 3}} {
		s, l, h := c.n.shows(t)
		if len(s) != c.switches || l != c.links || len(h) != c.switches {
			t.Errorf("%s shows switches %v, %d links, hosts %v", c.n.partition, s, l, h)
		}
		for _, sw := range s {
			if !strings.HasPrefix(sw, c.first) {
				t.Errorf("%s shows switch %s", c.n.partition, sw)
			}
		}
	}

	// State is apart: what an operator adds here is not wanted there, and each
	// has buckets of its own.
	ctx := context.Background()
	if _, err := east.AddFlows(ctx, &api.AddFlowsRequest{Flows: []*api.FlowEntry{
		{Dpid: "1", Priority: 20001, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "192.0.2.1"}},
	}}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*network{east, west} {
		list, err := n.ListFlows(ctx, &api.ListFlowsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, f := range list.Flows {
			if f.Flow.Owner == "operator" {
				count++
			}
			if mine := strings.HasPrefix(f.Flow.Dpid, "000000000000000"); mine != (n == east) {
				t.Errorf("%s wants the entry %v", n.partition, f.Flow)
			}
		}
		if want := map[*network]int{east: 1}[n]; count != want {
			t.Errorf("%s wants %d entries of the operator's, want %d", n.partition, count, want)
		}
		for _, name := range []string{"southbound.mastership", "discovery.keys"} {
			if keys(t, m.store, n.partition+"."+name) == 0 {
				t.Errorf("there is nothing in %s.%s", n.partition, name)
			}
			if keys(t, m.store, name) != 0 {
				t.Errorf("%s is in use; it is of no partition", name)
			}
		}
	}
	// Events are apart: a link lost here is none of theirs.
	if err := a.LinkDown(ctx, "s1", "s2"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "east has lost a link", func() bool { _, l, _ := east.shows(t); return l == 6 })
	if _, l, _ := west.shows(t); l != 4 {
		t.Errorf("west shows %d links after east has lost one", l)
	}
	mended(t, a)

	// Both gateways tell of all processes.
	for _, n := range []*network{east, west} {
		eventually(t, n.partition+" tells of both processes", func() bool {
			w, err := n.ListWorkers(ctx, &api.ListWorkersRequest{})
			return err == nil && len(w.Workers) == 2 && w.Workers[0].State == "up" && w.Workers[1].State == "up" && w.Workers[0].Partition == "east"
		})
	}

	// The switches of west's island try east's southbound all the time, which
	// refuses them by telling where they belong, and knows nothing of them.
	refused := func() float64 {
		return m.metric("weft_southbound_connections_refused_total", "reason", "elsewhere")
	}
	eventually(t, "each of the switches is refused", func() bool { return refused() >= 3 })
	before := refused()
	eventually(t, "the switches try again and are refused again", func() bool { return refused() >= before+3 })
	if s, _, _ := east.shows(t); len(s) != 4 {
		t.Errorf("east shows %v with the switches of west's at its door", s)
	}
	pingAll(t, b, true)
	explain(m.controller)
}

// keys returns how many keys a bucket has.
func keys(t *testing.T, store local.Store, name string) int {
	t.Helper()
	return keysWith(t, store, name, "")
}

// keysWith returns how many keys a bucket has whose values have a text in them.
func keysWith(t *testing.T, store local.Store, name, text string) (n int) {
	t.Helper()
	b, err := store.Bucket(context.Background(), name)
	if err == nil {
		err = b.All(context.Background(), func(_ string, value []byte, _ uint64) error {
			if strings.Contains(string(value), text) {
				n++
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMultiLasts runs three network services for longer than it takes to
// withdraw what a publisher has not told again: their publishers begin one
// after the other and have the same names, but are not each other's successors.
// A service of no partition hears of all of them.
func TestMultiLasts(t *testing.T) {
	t.Parallel()
	heard := make(chan string, 1000)
	m := partitioned(t, map[string]string{"a": `"1-80"`, "b": `"81-ff"`, "c": "rest"}, weft.Spec{
		Name: "observer", Doc: "hears of all switches", Subscribes: weft.Subjects(api.SwitchChangedEvent, api.LinkChangedEvent), Scale: weft.Any,
		Run: func(ctx context.Context, env *weft.Env) error {
			weft.On(env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) {
				heard <- fmt.Sprint(e.Switch.Dpid, " ", e.Switch.Connected)
			})
			weft.On(env, api.LinkChangedEvent, func(_ context.Context, e *api.LinkChanged) { heard <- "link " + e.Link.State })
			return weft.Serve(ctx, env)
		},
	})
	labs := map[string]*lab.Lab{}
	for i, name := range []string{"a", "b", "c"} {
		labs[name] = island(t, "linear:2", 1+0x80*flow.DPID(i), m.of[name])
	}
	for name, l := range labs {
		m.of[name].ready(t, 2, 1, 2)
		pingAll(t, l, false)
	}
	time.Sleep(13 * time.Second)
	for name, l := range labs {
		if s, links, h := m.of[name].shows(t); len(s) != 2 || links != 2 || len(h) != 2 {
			t.Errorf("after 13 s %s shows switches %v, %d links, hosts %v", name, s, links, h)
		}
		if err := l.LinkDown(context.Background(), "s1", "s2"); err != nil { // whoever has lost a switch does not see it
			t.Fatal(err)
		}
	}
	for _, n := range m.of {
		eventually(t, n.partition+" sees its link go", func() bool { _, l, _ := n.shows(t); return l == 0 })
	}
	var said []string
	for len(heard) > 0 {
		said = append(said, <-heard)
	}
	up, down := 0, 0
	for _, s := range said {
		if strings.HasSuffix(s, " true") {
			up++
		}
		if strings.HasSuffix(s, " false") {
			down++
		}
	}
	slices.Sort(said)
	if up < 6 || down > 0 || !slices.Contains(said, "link up") {
		t.Errorf("the service of no partition has heard %d switches come and %d go: %v", up, down, said)
	}
	explain(m.controller)
}
