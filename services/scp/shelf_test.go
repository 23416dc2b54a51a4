package scp

import (
	"context"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/sbi"
)

// TestKilledAfterTheFirstAnswer: what consumers have been answered is stored by
// then, for a process that is killed at once; and the next one takes nothing away
// while it starts.
func TestKilledAfterTheFirstAnswer(t *testing.T) {
	g := newRig(t)
	for n, of := range []sbi.NFType{sbi.UDM, sbi.SMF, sbi.AUSF} {
		g.register(n+2, of)
		if status, found, _ := g.discover(1, sbi.AMF, of, ""); status != 200 || len(found.NFInstances) != 1 {
			t.Fatalf("%s: %d %v", of, status, found)
		}
		for bucket, want := range map[string]string{"endpoints": group{Type: of}.name(), "instances": id(n + 2)} {
			var stored []string
			if err := g.buckets[bucket].All(context.Background(), func(key string, _ []byte, _ uint64) error {
				stored = append(stored, key)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(stored, want) {
				t.Errorf("%s when the answer is there: %q, want %q among them", bucket, stored, want)
			}
		}
	}
	g.vip("scp-udm.7777", func(v *api.Vip) bool { return v.Refuse != "" })
	g.stop()
	g.back.mu.Lock()
	g.back.removed = nil
	g.back.mu.Unlock()
	g.start()
	g.vip(nrfVip, func(*api.Vip) bool { return true })
	g.back.mu.Lock()
	defer g.back.mu.Unlock()
	if len(g.back.removed) > 0 {
		t.Errorf("the next run has removed %q", g.back.removed)
	}
}
