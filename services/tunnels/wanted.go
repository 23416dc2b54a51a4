package tunnels

import (
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The bounds of what may be wanted of a tunnel.
const (
	kbpsMax  = 1_000_000_000_000
	delayMax = 10_000_000
	hopsMax  = 255 // with more the TTL of a label runs out
	listMax  = 64
	holdMax  = 86_400
)

// checkWanted returns what is wrong with what is wanted of a tunnel, and brings
// it into one form.
func checkWanted(m *api.Tunnel) error {
	bad := func(format string, args ...any) error {
		return api.Errorf(codes.InvalidArgument, format, args...)
	}
	for _, l := range []struct {
		key  string
		list []string
	}{
		{"include_any", m.IncludeAny}, {"include_all", m.IncludeAll}, {"exclude_any", m.ExcludeAny}, {"exclude_risk_groups", m.ExcludeRiskGroups},
	} {
		if len(l.list) > listMax {
			return bad("%s: %d names: want at most %d", l.key, len(l.list), listMax)
		}
		for _, name := range l.list {
			if err := api.CheckName(l.key, name); err != nil {
				return bad("%w", err)
			}
		}
	}
	if err := checkSwitches("exclude_nodes", m.ExcludeNodes, m.From, m.To); err != nil {
		return bad("%w", err)
	}
	if err := checkSwitches("pin", m.Pin, m.From, m.To); err != nil {
		return bad("%w", err)
	}
	for _, l := range m.ExcludeLinks {
		sw, err := flow.ParseDPID(l.GetDpid())
		if err != nil {
			return bad("exclude_links: %w", err)
		}
		if l.Dpid = sw.String(); !flow.Port(l.Port).Physical() {
			return bad("exclude_links: switch %v port %d: want the number of a port", sw, l.Port)
		}
	}
	if m.Transport == "" {
		m.Transport = mpls
	}
	if m.Strategy == leastCost {
		m.Strategy = ""
	}
	setup, hold := priorities(m)
	switch {
	case m.Strategy != "" && minimised[m.Strategy] == "":
		return bad("strategy %.80q: want cost, latency or widest", m.Strategy)
	case m.ToleratedDelayUs > delayMax:
		return bad("tolerated_delay_us is %d: want at most %d", m.ToleratedDelayUs, delayMax)
	case m.ToleratedDelayUs > 0 && m.ToleratedDelayUs <= m.MaxDelayUs || m.ToleratedDelayUs > 0 && m.MaxDelayUs == 0:
		return bad("tolerated_delay_us is %d: want more than max_delay_us, %d, which is to be met first", m.ToleratedDelayUs, m.MaxDelayUs)
	case m.ReservedKbps > kbpsMax:
		return bad("reserved_kbps is %d: want at most %d", m.ReservedKbps, uint64(kbpsMax))
	case m.MaxDelayUs > delayMax:
		return bad("max_delay_us is %d: want at most %d", m.MaxDelayUs, delayMax)
	case m.MaxHops > hopsMax:
		return bad("max_hops is %d: want at most %d", m.MaxHops, hopsMax)
	case len(m.ExcludeLinks) > listMax:
		return bad("exclude_links: %d links: want at most %d", len(m.ExcludeLinks), listMax)
	case setup > 7:
		return bad("setup_priority is %d: want 0, the best, to 7", setup)
	case hold > setup:
		return bad("hold_priority is %d: want at most setup_priority, %d, so that tunnels do not displace each other by turns", hold, setup)
	case m.Transport != mpls && m.Transport != "vxlan" && m.Transport != "gre":
		return bad("transport %.80q: want mpls, vxlan or gre", m.Transport)
	case m.RevertAfterS < -1 || m.RevertAfterS > holdMax:
		return bad("revert_after_s is %d: want -1 (never) to %d", m.RevertAfterS, holdMax)
	case m.DiverseFrom != "" && m.DiverseFrom == m.Name:
		return bad("diverse_from is the tunnel itself")
	}
	if overlaid(m.Transport) {
		if err := checkOverlay(m); err != nil {
			return bad("%w", err)
		}
	}
	for _, n := range []struct{ key, name string }{{"diverse_from", m.DiverseFrom}, {"user", m.User}} {
		if n.name != "" {
			if err := api.CheckName(n.key, n.name); err != nil {
				return bad("%w", err)
			}
		}
	}
	return nil
}

// checkSwitches reads a list of switches other than the ends.
func checkSwitches(key string, list []string, ends ...string) error {
	if len(list) > listMax {
		return fmt.Errorf("%s: %d switches: want at most %d", key, len(list), listMax)
	}
	seen := map[string]bool{}
	for _, end := range ends {
		seen[end] = true
	}
	for i, text := range list {
		sw, err := flow.ParseDPID(text)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if list[i] = sw.String(); seen[list[i]] {
			return fmt.Errorf("%s: switch %v is an end of the tunnel, or given twice", key, sw)
		}
		seen[list[i]] = true
	}
	return nil
}

// priorities returns the priorities at which a tunnel takes bandwidth and holds it.
func priorities(m *api.Tunnel) (setup, hold uint32) {
	setup = 7
	if m.SetupPriority != nil {
		setup = *m.SetupPriority
	}
	hold = setup
	if m.HoldPriority != nil {
		hold = *m.HoldPriority
	}
	return setup, hold
}
