package scp

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-sdn/weft/sbi"
)

// figures are metrics that tests read, by name and labels.
type figures struct {
	mu sync.Mutex // guards of
	of map[string]*tally
}

func (f *figures) counter(name, _ string, labels ...string) Counter {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := name + " " + strings.Join(labels, " ")
	if f.of[key] == nil {
		f.of[key] = &tally{}
	}
	return f.of[key]
}

func (f *figures) histogram(name, help string, _ []float64, labels ...string) Observer {
	return observed{f.counter(name, help, labels...)}
}

// observed counts values.
type observed struct{ Counter }

func (o observed) Observe(float64) { o.Add(1) }

func (f *figures) is(t *testing.T, key string, want float64) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.of[key]; x == nil || x.sum() != want {
		var all []string
		for k, x := range f.of {
			all = append(all, fmt.Sprintf("%s: %v", k, x.sum()))
		}
		slices.Sort(all)
		t.Errorf("%s is not %v:\n%s", key, want, strings.Join(all, "\n"))
	}
}

// TestTraffic: what the front sees is counted by registered types.
func TestTraffic(t *testing.T) {
	g, f := newRig(t), &figures{of: map[string]*tally{}}
	g.proxy.traffic = newTraffic(f.counter, f.histogram)
	udm := g.function(5, sbi.UDM)
	g.function(1, sbi.AMF)
	g.discover(1, sbi.AMF, sbi.UDM, "")
	g.discover(3, "NOBODY", sbi.UDM, "")
	const pair = "consumer AMF producer UDM"
	g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...)
	g.do(1, "GET", "/nudm-main/v1/missing", "", forUDM...)
	g.do(1, "GET", "/nudm-main/v1/x", "", "3gpp-Sbi-Target-apiRoot", "http://"+udm.at.String())
	udm.stop()
	g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...)
	f.is(t, "type_discoveries_total "+pair, 1)
	f.is(t, "type_discoveries_total consumer other producer UDM", 1)
	f.is(t, "type_requests_total "+pair+" result ok", 2)
	f.is(t, "type_requests_total "+pair+" result client_error", 1)
	f.is(t, "type_requests_total "+pair+" result unreachable", 1)
	f.is(t, "type_request_seconds "+pair, 3)
}

// TestTrafficBounded: pairs of types beyond the bound count as others.
func TestTrafficBounded(t *testing.T) {
	f := &figures{of: map[string]*tally{}}
	x, types := newTraffic(f.counter, f.histogram), map[sbi.NFType]bool{}
	for i := range 2 * mostTypePairs {
		types[sbi.NFType(fmt.Sprint("T", i))] = true
	}
	for of := range types {
		x.requested(of, of, types, "ok", 1)
	}
	if len(x.of) != mostTypePairs+1 {
		t.Errorf("%d pairs", len(x.of))
	}
	f.is(t, "type_requests_total consumer other producer other result ok", mostTypePairs)
}
