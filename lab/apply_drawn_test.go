package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/traffic"
)

// TestApplyDrawn applies files that are drawn at random to a running lab. Each time the lab
// becomes the same as one that is brought up anew, a dry run says beforehand what
// is done, and what is not among it is not touched. WEFT_TEST_SEED=N draws others.
func TestApplyDrawn(t *testing.T) {
	seed := uint64(1)
	if text := os.Getenv("WEFT_TEST_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	for i := range uint64(drawnLabs) {
		for _, routed := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d routed %v", seed+i, routed), func(t *testing.T) {
				t.Parallel()
				applyDrawn(t, rand.New(rand.NewPCG(seed+i, 0)), routed)
			})
		}
	}
}

func applyDrawn(t *testing.T, rng *rand.Rand, routed bool) {
	d := drawFile(rng, routed)
	opt := Options{Weft: testprogram.Weft(t)}
	l := upForTest(t, parsed(t, d.String(), nil), opt)
	for range drawnSteps {
		s, err := layout.Load(l.Name())
		if err != nil {
			t.Fatal(err)
		}
		was := d
		d = d.redraw(s)
		said := fmt.Sprintf("from\n%s\nto\n%s", was, d)
		if cut := rng.IntN(4); cut == 0 && drawnSteps > 1 {
			_ = applyUntil(t, l.Name(), d.redraw(s).String(), rng.IntN(12), rng.IntN(2) == 0)
			said = "after one of another file that was cut off, " + said
		} else {
			said += wantUntouched(t, l, d.String())
		}
		if _, err := Apply(t.Context(), "drawn.yaml", []byte(d.String()), ApplyOptions{Name: l.Name()}); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		if is, err := Apply(t.Context(), "drawn.yaml", []byte(d.String()), ApplyOptions{Name: l.Name()}); err != nil || !is.None() {
			t.Fatalf("applied again: %+v, %v\n%s", is, err, said)
		}
		wantAsNew(t, l.Name(), opt, said)
		if t.Failed() {
			t.Fatal(said)
		}
	}
}

// wantAsNew fails if a lab is not as another one that is brought up with all that it has.
func wantAsNew(t *testing.T, name string, opt Options, said string) {
	t.Helper()
	l, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := l.Topology().YAML()
	if err != nil {
		t.Fatal(err)
	}
	again := parsed(t, string(text), nil)
	opt.Name = fmt.Sprintf("t%d-%d-anew", os.Getpid(), labsMade.Add(1))
	opt.KeeperCommand, opt.Temporary = keeperOfTest(t), true
	if _, err = Up(t.Context(), again, opt); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	defer func() {
		if err := Down(context.Background(), opt.Name); err != nil {
			t.Error(err)
		}
	}()
	var all []string
	for end := time.Now().Add(testwait.Limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) { // daemons settle
		if all = observe(t, name).differences(observe(t, opt.Name)); all == nil {
			return
		}
	}
	t.Errorf("applied, and not as anew:\n%s", strings.Join(all, "\n"))
}

// wantUntouched applies a file, and fails if that touches what the dry run before does not say.
func wantUntouched(t *testing.T, l *Lab, text string) (said string) {
	t.Helper()
	dry, err := Apply(t.Context(), "drawn.yaml", []byte(text), ApplyOptions{Name: l.Name(), DryRun: true})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	before := identities(t, l.Name())
	pinged := make(chan traffic.PingResult, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		r, _ := l.Ping(ctx, "u1", "u2", traffic.PingOptions{Count: -1, Interval: 5 * time.Millisecond, Timeout: 20 * time.Second})
		pinged <- r
	}()
	time.Sleep(50 * time.Millisecond)
	d, err := Apply(t.Context(), "drawn.yaml", []byte(text), ApplyOptions{Name: l.Name()})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	stop()
	if r := <-pinged; r.Received != r.Sent || r.Sent < 2 {
		t.Errorf("of %d packets between hosts that were not touched, %d came (%s)", r.Sent, r.Received, r.Error)
	}
	if !reflect.DeepEqual(d, dry) {
		t.Errorf("the dry run says %+v, and done is %+v", dry, d)
	}
	touched := map[string]bool{}
	for _, i := range slices.Concat(d.Added, d.Deleted) {
		touched[i.String()], touched["programs of "+i.Name] = true, true
	}
	anew := d.Anew()
	for _, e := range d.Changed {
		said += "\n" + e.String()
		if e.Anew != "" || e.What == "ovs" || slices.Contains([]string{"switch", "port", "mac", "vlan", "mtu", "delay", "jitter", "eth1", "manage"}, e.What) {
			touched[e.Item.String()] = true
		}
		if strings.HasPrefix(e.What, "program ") || slices.Contains([]string{"cpus", "ipv4", "ipv6", "manage"}, e.What) {
			touched["programs of "+e.Name] = true
		}
	}
	after := identities(t, l.Name())
	for what, was := range before {
		if is := after[what]; is.id != was.id && !touched[what] && !slices.ContainsFunc(was.at, func(n string) bool { return anew[n] }) {
			t.Errorf("%s was %s, and is %s", what, was.id, is.id)
		}
	}
	return said
}

// identity is by what a part of a lab is known that is no other of the same kind, and
// the nodes with which it goes.
type identity struct {
	id string
	at []string
}

// identities returns those of a lab's hosts, switches, links and programs.
func identities(t *testing.T, name string) map[string]identity {
	t.Helper()
	s, err := layout.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]identity{}
	for i := range s.Wires {
		w := &s.Wires[i]
		id := ""
		for _, e := range w.Ends() {
			if err := machine.WithLinks(e.Netns, func(h *netlink.Handle) error {
				l, err := h.LinkByName(e.Iface)
				id += fmt.Sprint(" ", e.Iface, l.Attrs().Index)
				return err
			}); err != nil {
				t.Error(err)
			}
		}
		item := s.ItemOf(w).String()
		all[item] = identity{all[item].id + id, append(all[item].at, w.A.Node, w.B.Node)}
	}
	for i := range s.Topology.Hosts {
		h := s.Topology.Hosts[i].Name
		in, _ := machine.InodeOf(machine.NetnsPath(machine.HostNetns(name, h)))
		all["host "+h] = identity{fmt.Sprint(in, all["host "+h].id), all["host "+h].at}
	}
	for _, o := range nodes.SwitchesOf(s).AllOVS() {
		rows, err := o.Table(t.Context(), "_uuid,name", "Bridge")
		if err != nil {
			t.Fatal(err)
		}
		daemon, err := os.ReadFile(o.Dir + "/ovs-vswitchd.pid")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			for sw, bridge := range s.Bridges {
				if bridge == row[1] {
					all["switch "+sw] = identity{fmt.Sprint(row[0], string(daemon)), []string{sw}}
				}
			}
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		in, _ := machine.InodeOf(machine.NetnsPath(machine.HostNetns(name, n.Name)))
		id := all["switch "+n.Name]
		all["switch "+n.Name] = identity{fmt.Sprint(in, id.id), []string{n.Name}}
	}
	for _, p := range handleOf(s).Programs(t.Context()) {
		what := "programs of " + p.Host
		all[what] = identity{fmt.Sprint(all[what].id, " ", p.Name, " ", p.PID), nil}
	}
	return all
}
