package local

import (
	"fmt"
	"slices"
	"testing"
)

// TestFiguresRemoved: a figure that is taken back is told no more, and begins
// anew when it is asked for again; with a service that has ended go all of its
// figures but those that its next run has asked for.
func TestFiguresRemoved(t *testing.T) {
	r := newRegistry()
	first, next := &Metrics{r, "hosts"}, &Metrics{r, "hosts"}
	told := func() (list []string) {
		families, err := r.inner.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				label := ""
				for _, l := range m.GetLabel() {
					label = l.GetValue()
				}
				list = append(list, fmt.Sprint(f.GetName(), " ", label, " ", m.GetCounter().GetValue()+m.GetGauge().GetValue()))
			}
		}
		return list
	}
	want := func(list ...string) {
		t.Helper()
		if got := told(); !slices.Equal(got, list) {
			t.Errorf("got %q, want %q", got, list)
		}
	}
	first.Counter("packets", "P.", "host", "a").Add(3)
	first.Counter("packets", "P.", "host", "b").Add(4)
	first.Gauge("up", "U.", func() float64 { return 1 })
	want("weft_hosts_packets a 3", "weft_hosts_packets b 4", "weft_hosts_up  1")
	first.Remove("packets", "host", "a")
	first.Remove("packets", "host", "nobody")
	want("weft_hosts_packets b 4", "weft_hosts_up  1")
	first.Counter("packets", "P.", "host", "a").Add(1)
	want("weft_hosts_packets a 1", "weft_hosts_packets b 4", "weft_hosts_up  1")

	next.Gauge("up", "U.", func() float64 { return 2 })
	first.removeAll()
	want("weft_hosts_up  2")
	next.removeAll()
	want()
}
