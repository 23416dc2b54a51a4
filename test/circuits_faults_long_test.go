//go:build long

package test

import "fmt"

// more is what takes longer than make test may: routing killed, links flapping.
func (f *carrierFaults) more() {
	f.t.Helper()
	for _, daemon := range []string{"ospfd.pid", "zebra.pid"} {
		f.daemonKilled("pe2", daemon)
	}
	f.daemonKilled("cr1", "ovs-vswitchd.pid")
	for i := range 10 {
		a, b := "pe1", fmt.Sprintf("cr%d", i%2+1)
		if err := f.l.LinkDown(f.t.Context(), a, b); err != nil {
			f.t.Fatal(err)
		}
		f.carried()
		if err := f.l.LinkUp(f.t.Context(), a, b); err != nil {
			f.t.Fatal(err)
		}
	}
	f.whole()
}
