package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"
)

// Of TestRandomFaults: which faults, and how many. The seed is printed; the
// same one makes the same faults in the same order.
const (
	seedVariable  = "WEFT_TEST_SEED"
	stepsVariable = "WEFT_TEST_STEPS"
)

// number reads a variable of the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// chaos is a lab to which things happen, and what is known of it without
// asking the controller.
type chaos struct {
	t      *testing.T
	rng    *rand.Rand
	l      *lab.Lab
	c      *controller
	o      options
	cut    map[int]bool    // links by index in the topology
	dead   map[string]bool // switches that have lost all their links
	plugs  map[string]bool // hosts that are unplugged
	next   uint32          // mark of the next broadcast
	detour *loopDetector
}

// mishap is something that happens, and mends what cannot stay broken. do
// returns what it has done, empty if there is nothing that it could do.
type mishap struct {
	weight int
	do     func(*chaos) (string, error)
}

var mishaps = []mishap{
	{5, (*chaos).cutLink},
	{5, (*chaos).mendLink},
	{2, (*chaos).unplug},
	{3, (*chaos).plug},
	{1, (*chaos).killSwitch},
	{2, (*chaos).reviveSwitch},
	{2, (*chaos).reconnect},
	{2, (*chaos).wipe},
	{1, (*chaos).restart},
}

// TestRandomFaults has links, switches, hosts and the controller fail and come
// back at random. After every step, hosts reach each other just where the
// surviving graph connects them, and nothing has ever gone round in a loop.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	seed, steps := number(t, seedVariable, 20), number(t, stepsVariable, 60)
	t.Logf("%s=%d %s=%d", seedVariable, seed, stepsVariable, steps)
	x := &chaos{t: t, rng: rand.New(rand.NewPCG(seed, 0)), cut: map[int]bool{}, dead: map[string]bool{}, plugs: map[string]bool{}}
	x.o = options{set: []string{"flowrules.verify_interval=2s"}}
	x.c = start(t, x.o)
	x.o.store, x.o.address = x.c.store, x.c.address
	x.l = up(t, "random:6,3,7", x.c)
	settled(x.c, x.l)
	x.detour = detectLoops(t, x.l)
	pingAll(t, x.l, false)
	total := 0
	for _, f := range mishaps {
		total += f.weight
	}
	var log []string
	for step := 1; step <= int(steps); step++ {
		did := ""
		for did == "" {
			n := x.rng.IntN(total)
			for _, f := range mishaps {
				if n -= f.weight; n < 0 {
					var err error
					if did, err = f.do(x); err != nil {
						t.Fatalf("step %d: %s: %v", step, did, err)
					}
					break
				}
			}
		}
		when := fmt.Sprintf("step %d: %s", step, did)
		log = append(log, when)
		began := time.Now()
		x.shout()
		if wrong := x.agrees(); len(wrong) > 0 {
			t.Errorf("%s: not as the graph has it after %v: %s", when, time.Since(began).Round(time.Second), strings.Join(wrong, ", "))
		}
		x.shout()
		x.detour.check(t, when)
		if t.Failed() {
			t.Logf("seed %d, the last steps:\n%s", seed, strings.Join(log[max(0, len(log)-10):], "\n"))
			explain(x.c)
			return
		}
	}
	x.detour.mu.Lock()
	defer x.detour.mu.Unlock()
	t.Logf("%d steps, %d frames watched at links", steps, x.detour.frames)
}

// pick returns one of a list at random.
func pick[T any](x *chaos, list []T) T { return list[x.rng.IntN(len(list))] }

// links returns the indices of the links that satisfy a condition.
func (x *chaos) links(ok func(i int) bool) (list []int) {
	for i := range x.l.Topology().Links {
		if ok(i) {
			list = append(list, i)
		}
	}
	return list
}

func (x *chaos) ends(i int) (a, b string) {
	l := x.l.Topology().Links[i]
	return fmt.Sprintf("%s:%d", l.A, l.APort), fmt.Sprintf("%s:%d", l.B, l.BPort)
}

func (x *chaos) cutLink() (string, error) {
	whole := x.links(func(i int) bool { return !x.cut[i] && !x.severed(i) })
	if len(x.cut) >= 3 || len(whole) == 0 {
		return "", nil
	}
	i := pick(x, whole)
	a, b := x.ends(i)
	x.cut[i] = true
	if x.rng.IntN(3) == 0 {
		return "silent " + a + "-" + b, x.l.LinkSilent(context.Background(), a, b)
	}
	return "cut " + a + "-" + b, x.l.LinkDown(context.Background(), a, b)
}

func (x *chaos) mendLink() (string, error) {
	broken := x.links(func(i int) bool { return x.cut[i] && !x.severed(i) })
	if len(broken) == 0 {
		return "", nil
	}
	i := pick(x, broken)
	a, b := x.ends(i)
	delete(x.cut, i)
	return "mend " + a + "-" + b, x.l.LinkUp(context.Background(), a, b)
}

// severed reports whether a link belongs to a dead switch.
func (x *chaos) severed(i int) bool {
	l := x.l.Topology().Links[i]
	return x.dead[l.A] || x.dead[l.B]
}

func (x *chaos) unplug() (string, error) {
	var in []string
	for _, h := range x.l.Topology().Hosts {
		if !x.plugs[h.Name] && !x.dead[h.Switch] {
			in = append(in, h.Name)
		}
	}
	if len(x.plugs) >= 2 || len(in) == 0 {
		return "", nil
	}
	h := pick(x, in)
	x.plugs[h] = true
	return "unplug " + h, x.l.LinkDown(context.Background(), h, x.at(h))
}

func (x *chaos) plug() (string, error) {
	var out []string
	for _, h := range x.l.Topology().Hosts {
		if x.plugs[h.Name] && !x.dead[h.Switch] {
			out = append(out, h.Name)
		}
	}
	if len(out) == 0 {
		return "", nil
	}
	h := pick(x, out)
	delete(x.plugs, h)
	return "plug " + h, x.l.LinkUp(context.Background(), h, x.at(h))
}

func (x *chaos) at(host string) string {
	h, _ := x.l.Topology().HostByName(host)
	return h.Switch
}

// killSwitch takes all links of a switch, and its entries.
func (x *chaos) killSwitch() (string, error) {
	if len(x.dead) > 0 {
		return "", nil
	}
	s := pick(x, x.l.Topology().Switches).Name
	x.dead[s] = true
	if err := x.all(s, (*lab.Lab).LinkDown); err != nil {
		return "kill " + s, err
	}
	_, err := x.l.OfCtl(context.Background(), s, "del-flows")
	return "kill " + s, err
}

func (x *chaos) reviveSwitch() (string, error) {
	for s := range x.dead {
		delete(x.dead, s)
		return "revive " + s, x.all(s, (*lab.Lab).LinkUp)
	}
	return "", nil
}

// all does something with all links of a switch but those that are broken
// themselves.
func (x *chaos) all(s string, do func(*lab.Lab, context.Context, string, string) error) error {
	for i, l := range x.l.Topology().Links {
		if (l.A == s || l.B == s) && !x.cut[i] {
			a, b := x.ends(i)
			if err := do(x.l, context.Background(), a, b); err != nil {
				return err
			}
		}
	}
	for _, h := range x.l.Topology().Hosts {
		if h.Switch == s && !x.plugs[h.Name] {
			if err := do(x.l, context.Background(), h.Name, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// reconnect has a switch lose its controller for a moment.
func (x *chaos) reconnect() (string, error) {
	s := pick(x, x.l.Topology().Switches).Name
	bridge, err := x.l.Bridge(s)
	if err != nil {
		return "reconnect " + s, err
	}
	target, err := x.l.VSCtl(context.Background(), "get-controller", bridge)
	if err == nil {
		_, err = x.l.VSCtl(context.Background(), "del-controller", bridge)
	}
	if err == nil {
		time.Sleep(time.Duration(x.rng.IntN(300)) * time.Millisecond)
		_, err = x.l.VSCtl(context.Background(), "set-controller", bridge, strings.TrimSpace(target))
	}
	return "reconnect " + s, err
}

// wipe has somebody delete all entries of a switch.
func (x *chaos) wipe() (string, error) {
	s := pick(x, x.l.Topology().Switches).Name
	_, err := x.l.OfCtl(context.Background(), s, "del-flows")
	return "wipe " + s, err
}

// restart ends the controller and starts it again with what it has kept.
func (x *chaos) restart() (string, error) {
	x.c.stop()
	time.Sleep(time.Duration(x.rng.IntN(300)) * time.Millisecond)
	x.c = start(x.t, x.o)
	return "restart the controller", nil
}

// shout has every host that is there send two broadcasts.
func (x *chaos) shout() {
	for _, h := range x.l.Topology().Hosts {
		if x.plugs[h.Name] || x.dead[h.Switch] {
			continue
		}
		w := attach(x.t, x.l, h.Name)
		for range 2 {
			w.send(broadcastOf(flow.MAC(h.MAC), h.IPv4.Addr(), x.next))
			x.next++
		}
		w.close()
	}
	time.Sleep(100 * time.Millisecond)
}

// component returns, for every host that is there, which part of the network
// it is in.
func (x *chaos) component() map[string]string {
	root := map[string]string{}
	for _, s := range x.l.Topology().Switches {
		root[s.Name] = s.Name
	}
	find := func(s string) string {
		for root[s] != s {
			s = root[s]
		}
		return s
	}
	for i, l := range x.l.Topology().Links {
		if !x.cut[i] && !x.severed(i) {
			root[find(l.A)] = find(l.B)
		}
	}
	part := map[string]string{}
	for _, h := range x.l.Topology().Hosts {
		if !x.plugs[h.Name] && !x.dead[h.Switch] {
			part[h.Name] = find(h.Switch)
		}
	}
	return part
}

// agrees pings until hosts reach each other just where they should, and returns
// the pairs that still differ when the time is over.
func (x *chaos) agrees() (wrong []string) {
	part := x.component()
	pairs := slices.DeleteFunc(x.l.AllPairs(false), func(p topology.Pair) bool { return part[p.From] == "" })
	for end := time.Now().Add(testwait.Limit); ; {
		results, err := x.l.PingAll(context.Background(), pairs, traffic.PingOptions{Count: 1, Timeout: 300 * time.Millisecond, Parallel: 64})
		if err != nil {
			x.t.Fatal(err)
		}
		wrong = wrong[:0]
		var again []topology.Pair
		for _, r := range results {
			want := part[r.To] != "" && part[r.From] == part[r.To]
			if got := r.Lost() == 0; got != want {
				wrong = append(wrong, fmt.Sprintf("%s->%s %v, want %v", r.From, r.To, got, want))
				again = append(again, topology.Pair{From: r.From, To: r.To})
			}
		}
		if len(wrong) == 0 || time.Now().After(end) {
			return wrong
		}
		pairs = again
		time.Sleep(50 * time.Millisecond)
	}
}
