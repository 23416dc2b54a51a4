//go:build long

package virtual

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// defects are those that the controller has had, put back by changes of its source.
var defects = map[string][]edit{
	// The mastership ends while the store is away, though nobody can take it over.
	"store": {{"services/southbound/mastership/pledge.go", "\treturn promised\n}", "\treturn denied\n}"}},
	// What a process tells by an earlier plan is taken, and stays.
	"plans": {
		{"deploy/members/stamp.go", "return s == nil || s.Wiring == v.Wiring() }", "return true }"},
		{"deploy/members/stamp.go", "return s == nil || s.run == 0 || s.run == to.Epoch.Load()", "return true"},
		{"deploy/receiver.go", "if stamped && !v.Has(members.OwnerOf(string(subject)), partition) || !v.Parts.Receives(s.Spec.Name, v.Mine.Partition, partition) {", "if false {"},
	},
	// A port that was the end of a link waits for its neighbour for ten minutes,
	// though its switch has returned with other cables.
	"second": {
		{"services/discovery/roles.go", "at = max(at, r.waitsUntil(p))", "at = max(at, p.until)"},
		{"services/discovery/roles.go", "\tq := r.facing(p)\n\tif q == nil {\n\t\treturn\n", "\tq := r.facing(p)\n\tif q == nil || q != nil {\n\t\treturn\n"},
	},
	// A link that goes down often is out of use, though it is the only one.
	"damping": {{"api/links.go", `return l.GetState() == "up" || l.GetState() == "dampened"`, `return l.GetState() == "up"`}},
}

// most is after how many schedules without a failure a defect counts as not found.
const most = 200

// TestEdits: what puts defects back, and what changes the runtime, fits the sources.
func TestEdits(t *testing.T) {
	for _, name := range sorted(defects) {
		overlay(t, t.TempDir(), inRuntime(t, defects[name]...))
	}
}

// TestDefects: schedules find each of the defects.
func TestDefects(t *testing.T) {
	for _, name := range sorted(defects) {
		t.Run(name, func(t *testing.T) {
			program := build(t, "", inRuntime(t, defects[name]...))
			var all sync.WaitGroup
			var next atomic.Uint64
			var found atomic.Pointer[string]
			for range runtime.NumCPU() {
				all.Go(func() {
					for found.Load() == nil {
						n := next.Add(1)
						if n > most {
							return
						}
						if out, err := runSeed(t.Context(), program, n); err != nil {
							found.CompareAndSwap(nil, &out)
						}
					}
				})
			}
			all.Wait()
			if found.Load() == nil {
				t.Fatalf("not found in %d schedules", most)
			}
			t.Logf("found after %d schedules:\n%s", next.Load(), *found.Load())
		})
	}
}
