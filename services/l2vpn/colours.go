package l2vpn

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// readColours reads what an end may send beyond its rate, and which frames are discardable (yellow).
func readColours(c *circuit) error {
	switch {
	case c.ExcessKbps > mostKbps:
		return fmt.Errorf("excess_kbps is %d: want at most %d", c.ExcessKbps, uint64(mostKbps))
	case c.ExcessKbps > 0 && c.RateKbps == 0:
		return fmt.Errorf("excess_kbps without rate_kbps, beyond which it is: want both")
	case len(c.Yellow) > 0 && c.ExcessKbps == 0:
		return fmt.Errorf("yellow without excess_kbps, which discardable frames have: want both")
	}
	for i, text := range c.Yellow {
		p, err := parseCodePoint(text)
		if err != nil {
			return fmt.Errorf("yellow: %w", err)
		}
		if slices.Contains(c.yellow, p) {
			return fmt.Errorf("yellow: %v is named twice", p)
		}
		c.yellow, c.Yellow[i] = append(c.yellow, p), p.String()
	}
	slices.Sort(c.Yellow)
	return nil
}

// rates adds the meters of an end. What is above the rate and within the excess passes, marked where the
// switch's meters can; where customers mark what is discardable, that has a meter, and the excess, of its own.
func (s *set) rates(c *circuit, m *api.CircuitMember) {
	if m.Meter != 0 {
		all := c.RateKbps
		if len(c.yellow) == 0 {
			all += c.ExcessKbps
		}
		meter := meter(m.Meter, all)
		if s.marks && all > c.RateKbps {
			mark := meter.Bands[0]
			mark.Kind, mark.Rate, mark.PrecLevel = flow.MeterDSCPRemark, uint32(c.RateKbps), 1
			meter.Bands = append([]flow.Band{mark}, meter.Bands...)
		}
		s.meters = append(s.meters, meter)
	}
	if m.YellowMeter != 0 {
		s.meters = append(s.meters, meter(m.YellowMeter, c.ExcessKbps))
	}
}

// excess returns what becomes of frames above the rate and within the excess at a switch; empty: there are none.
func (s *status) excess(sw flow.DPID) string {
	switch c := s.circuit; {
	case c.ExcessKbps == 0:
		return ""
	case len(c.yellow) > 0:
		return "discardable frames have it to themselves"
	case s.marks[sw]:
		return "marked by a higher drop precedence in DSCP"
	}
	return "passed unmarked: the switch's meters only drop"
}

// learnMarks asks switches of circuits with an excess whether their meters mark, those that have not been
// asked since they connected.
func learnMarks(ctx context.Context, b *store, features func(context.Context, flow.DPID) (*api.MeterFeatures, error)) {
	b.mu.Lock()
	var ask []flow.DPID
	for _, s := range b.status {
		for _, sw := range s.circuit.edges() {
			if _, known := s.marks[sw]; s.circuit.ExcessKbps > 0 && !known && b.net.Info(sw).GetConnected() && !slices.Contains(ask, sw) {
				ask = append(ask, sw)
			}
		}
	}
	b.mu.Unlock()
	for _, sw := range ask {
		f, err := features(ctx, sw)
		if err != nil {
			continue // it is asked again
		}
		marks := f.GetBandTypes()&(1<<flow.MeterDSCPRemark) != 0
		b.mu.Lock()
		for name := range b.at[sw] {
			s := b.status[name]
			if s.circuit.ExcessKbps == 0 {
				continue
			}
			if s.marks == nil {
				s.marks = map[flow.DPID]bool{}
			}
			if s.marks[sw] != marks {
				b.again(s)
			}
			s.marks[sw] = marks
		}
		b.mu.Unlock()
	}
}
