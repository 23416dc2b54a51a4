package test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// usedBy returns the processor time that processes have used.
func usedBy(pids map[string]int) (sum time.Duration) {
	for _, pid := range pids {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // nothing of one that has ended
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 12 { // proc(5): the 14th and 15th of all are user and system time
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			sum += time.Duration(user+system) * 10 * time.Millisecond
		}
	}
	return sum
}

// trustSquare has a switch with 5,000 ports connect, whose links flap, and leave:
// what that takes grows with the number of ports, not with its square; afterwards
// nothing of it is left, and another switch is served meanwhile.
func trustSquare(t *testing.T, f *faults) {
	const (
		mib   = 1 << 20
		ports = 5000
		flaps = 2000
	)
	d := f.deploy(t, handshakePlan)
	first := d.device(t, 1)
	used, before := usedBy(d.pids()), d.resident()

	big := oftest.NewDevice(oftest.Config{DPID: 2, Ports: ports}, nil)
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			_ = big.Dial(ctx, "tcp", d.openflow) // and again
		}
	}()
	edges := func() (n int) {
		m, _ := api.NewDiscoveryClient(d.conn).ListPortRoles(context.Background(), &api.ListPortRolesRequest{}) // none if it fails
		for _, p := range m.GetPorts() {
			if p.Role == flow.RoleEdge.String() && p.At.GetDpid() == flow.DPID(2).String() {
				n++
			}
		}
		return n
	}
	eventually(t, "all ports edges", func() bool { return edges() == ports })
	// Multicasts to so many ports go by groups, which reach each once.
	reached := func() map[flow.Port]int {
		to := map[flow.Port]int{}
		for _, g := range big.Groups() {
			for _, b := range g.Buckets {
				for _, a := range b.Actions {
					if a.Kind == flow.ActionOutput {
						to[flow.Port(a.Arg)]++
					}
				}
			}
		}
		return to
	}
	eventually(t, "multicasts to all ports", func() bool { return len(reached()) == ports })
	for p, n := range reached() {
		if n != 1 {
			t.Fatalf("multicasts go to port %d %d times", p, n)
		}
	}
	for p := range flow.Port(flaps) {
		big.SetLink(p+1, false)
		big.SetLink(p+1, true)
	}
	eventually(t, "all ports edges after they have flapped", func() bool { return edges() == ports })
	took, most := usedBy(d.pids())-used, d.resident()
	t.Logf("%d ports, %d of which flapped: %v of processor time, %d MiB resident, %d before", ports, flaps, took, most/mib, before/mib)
	if took > 90*time.Second || most > before+800*mib {
		t.Errorf("%d ports took %v of processor time, and %d MiB", ports, took, (most-before)/mib)
	}

	leave()
	<-over
	eventually(t, "the switch gone", func() bool { s := d.info(2); return s != nil && !s.Connected })
	eventually(t, "its ports gone", func() bool { return edges() == 0 })
	eventually(t, "no work for a switch that is gone", func() bool {
		used := usedBy(d.pids())
		time.Sleep(time.Second)
		return usedBy(d.pids())-used < 300*time.Millisecond
	})
	if first.Connections() != 1 || !d.info(1).GetConnected() {
		t.Error("another switch is disconnected")
	}
	d.device(t, 3)
}
