package hosts

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/wefttest"
)

// Every key of live is one of the configuration that retune takes over, and all
// others are left as they are.
func TestRetuneTakesOverWhatLiveLists(t *testing.T) {
	cfg := DefaultConfig()
	tab := newTable(cfg)
	next := *cfg
	next.PortLimit, next.AddressLimit, next.Limit, next.Moves = 1, 2, 3, 4
	next.Age, next.Verify, next.Penalty = 11*time.Minute, 12*time.Second, 13*time.Second
	next.PortGrace, next.SwitchGrace = 14*time.Second, 15*time.Second
	next.MoveWindow, next.Quarantine = 16*time.Second, 17*time.Second
	tab.retune(0, &next)
	if got, want := *tab.cfg, next; got.Limit != want.Limit || got.PortLimit != want.PortLimit || got.AddressLimit != want.AddressLimit ||
		got.Moves != want.Moves || got.Age != want.Age || got.Verify != want.Verify || got.Penalty != want.Penalty ||
		got.PortGrace != want.PortGrace || got.SwitchGrace != want.SwitchGrace || got.MoveWindow != want.MoveWindow || got.Quarantine != want.Quarantine {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if cfg.Limit != DefaultConfig().Limit {
		t.Error("the configuration that it was given has been written to")
	}
}

func TestConfigIsTakenOver(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		if err := wefttest.Reconfigure(h, func(c *Config) { c.Limit, c.Age = 5, time.Hour }); err != nil {
			t.Error(err)
		}
		if err := wefttest.Reconfigure(h, func(c *Config) { c.ProbeMAC = "02:00:00:00:00:09" }); err == nil {
			t.Error("a key that is not in Live has been taken over")
		}
		if err := wefttest.Reconfigure(h, func(c *Config) { c.Limit = 0 }); err == nil {
			t.Error("a limit of 0 has been taken over")
		}
	})
}
