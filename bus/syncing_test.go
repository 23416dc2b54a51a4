package bus_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/internal/testwait"
)

// TestUnsynced checks that the state names a server that confirms writes before
// they are on disk, and no other.
func TestUnsynced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		lazy bool
		want []string
	}{{"lazy", true, []string{"lazy"}}, {"always", false, nil}} {
		p := ports(t, 2)
		m := &member{Name: c.name, Dir: filepath.Join(t.TempDir(), c.name), Port: p[0], Monitor: p[1], Lazy: c.lazy}
		m.start(t)
		t.Cleanup(m.kill)
		s := opened(t, bus.Config{URL: m.url(), MonitorPort: m.Monitor})
		testwait.Until(t, "the server has been asked", func() bool { return s.AskedSyncing() })
		st, err := s.State(t.Context())
		if err != nil || !slices.Equal(st.Unsynced, c.want) {
			t.Errorf("%s: unsynced %v, %v; want %v", c.name, st.Unsynced, err, c.want)
		}
	}
}
