package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/api"
)

// TestCircuitTimes: what --from and --until make of a circuit, at one time.
func TestCircuitTimes(t *testing.T) {
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct{ had, args, from, until, wrong string }{
		{"", "--from 2026-12-01T10:00:00+01:00 --until +2h", "2026-12-01T09:00:00Z", "2026-12-01T11:00:00Z", ""},
		{"", "--from +1h --until +30m", "2026-12-01T09:00:00Z", "2026-12-01T09:30:00Z", ""},
		{"", "--until +30m", "", "2026-12-01T08:30:00Z", ""},
		{"2026-12-02T09:00:00Z", "--until +30m", "2026-12-02T09:00:00Z", "2026-12-02T09:30:00Z", ""},
		{"2026-11-02T09:00:00Z", "--until +30m", "2026-11-02T09:00:00Z", "2026-12-01T08:30:00Z", ""},
		{"2026-11-02T09:00:00Z", "--from=", "", "", ""},
		{"", "--from tomorrow", "", "", "--from"},
		{"", "--until +soon", "", "", "--until"},
		{"", "--until +-2h", "", "", "--until"},
	} {
		m := &api.Circuit{From: c.had}
		to, fields := m.ProtoReflect(), m.ProtoReflect().Descriptor().Fields()
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		from, until := set.String("from", "", ""), set.String("until", "", "")
		err := set.Parse(strings.Fields(c.args))
		if err == nil && set.Changed("from") {
			err = setTime("from", to, fields.ByName("from"), *from, now)
		}
		if err == nil && set.Changed("until") {
			err = setTime("until", to, fields.ByName("until"), *until, now)
		}
		if c.wrong != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.wrong) {
				t.Errorf("%s: %v", c.args, err)
			}
		} else if err != nil || m.From != c.from || m.Until != c.until {
			t.Errorf("%s: from %s until %s, %v", c.args, m.From, m.Until, err)
		}
	}
}
